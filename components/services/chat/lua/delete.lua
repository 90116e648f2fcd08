-- Delete a chat, except for the position of its sequence. *inboxes* is the prefix of the channels of inboxes.
-- KEYS    chat messages members reads mentions own blocked sent deleted names muted altered changes here typing
-- ARGV    id channel inboxes
-- USES    head over
-- RETURNS 1 if there was one
local head = head_of(chat, "seq", "n", "at", "level", "gone")
if not is_there(head) then return 0 end
for _, person in ipairs(redis.call("ZRANGE", reads, 0, -1)) do
  redis.call("DEL", mentions .. "/" .. person, own .. "/" .. person)
  redis.call("PUBLISH", inboxes .. person, "deleted")
end
end_chat(id, head, head.at)
redis.call("PUBLISH", channel, "deleted")
return 1
