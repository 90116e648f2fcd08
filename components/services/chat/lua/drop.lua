-- Take chats out of an inbox, unless they were noted anew since they were read. Idempotent by nature. Of each chat
-- *chats* has the id; the score among the hints and the one in the past that were read, "" for none; and how many
-- milliseconds a hint is young: then somebody may be about to enter, and it stays.
-- KEYS    hints past
-- ARGV    chats...
-- USES    time
-- RETURNS 1
local function drop(key, id, read, before)
  local score = tonumber(redis.call("ZSCORE", key, id) or "")
  if score and score == tonumber(read) and score <= before then redis.call("ZREM", key, id) end
end

for at = 1, #chats, 4 do
  drop(hints, chats[at], chats[at + 1], NOW - chats[at + 3])
  drop(past, chats[at], chats[at + 2], math.huge)
end
return 1
