-- Remove chats from an inbox, unless their entries have changed since they were read. Idempotent by nature. For each
-- chat, *chats* has the id; the scores that were read from *hints* and *past*, "" for none; and for how many
-- milliseconds a hint is young. A young hint stays, because the person may be about to enter the chat.
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
