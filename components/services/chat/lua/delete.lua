-- Delete a chat, but for how far its sequence has come.
-- KEYS[1] chat      HASH, what the chat is and how far it has come
-- KEYS[2] messages  STREAM <seq>-0 -> message
-- KEYS[3] members   HASH person -> words
-- KEYS[4] reads     ZSET person by the seq up to which he has read
-- KEYS[5] mentions  prefix to a person: ZSET
-- KEYS[6] own       prefix to a person: ZSET
-- KEYS[7] blocked   HASH person who may not come back -> since when
-- KEYS[8] sent      prefix to a part: HASH
-- KEYS[9] deleted   ZSET
-- KEYS[10] names    ZSET chat id by the millisecond of its last message
-- KEYS[11] muted    ZSET person who left while they were muted by the millisecond until when
-- ARGV[1] chat id
-- ARGV[2] channel of the chat
-- ARGV[3] what the channels of inboxes begin with
-- Returns 1 if there was one
local chat, messages, members, reads, mentions, own = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local blocked, sent, deleted, names, muted = KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11]
local id, channel, inboxes = ARGV[1], ARGV[2], ARGV[3]
local YEAR = 366 * 86400000 -- milliseconds

local head = redis.call("HMGET", chat, "seq", "n", "at", "level", "gone")
if not head[1] or head[5] then return 0 end
for _, person in ipairs(redis.call("ZRANGE", reads, 0, -1)) do
  redis.call("DEL", mentions .. person, own .. person)
  redis.call("PUBLISH", inboxes .. person, "deleted")
end
for part = 0, head[4] do
  for each = 0, 4 ^ part - 1 do redis.call("UNLINK", sent .. part .. ":" .. each) end
end
redis.call("UNLINK", chat, messages, members, reads, blocked, deleted, muted)
redis.call("HSET", chat, "seq", head[1], "n", head[2], "at", head[3], "gone", "1")
redis.call("PEXPIRE", chat, YEAR)
redis.call("ZREM", names, id)
redis.call("PUBLISH", channel, "deleted")
return 1
