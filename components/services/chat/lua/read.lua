-- Move the reading position of a member, which only ever goes forward.
-- KEYS[1] chat      HASH, what the chat is and how far it has come
-- KEYS[2] messages  STREAM <seq>-0 -> message
-- KEYS[3] members   HASH person -> words: role, number, joined at, sees after, ordinal read, muted until, call
-- KEYS[4] reads     ZSET person by the seq up to which he has read
-- KEYS[5] mentions  prefix to a person: ZSET seqs that mention him, unread
-- KEYS[6] own       prefix to a person: ZSET seqs that he said after what he has read
-- KEYS[7] deleted   ZSET words of a deleted message by seq
-- ARGV[1] person
-- ARGV[2] seq
-- ARGV[3] channel of the chat
-- ARGV[4] so many members may know how far each has read
-- Returns the position after it, -1 for who is no member, and 1 if trimming is due
local chat, messages, members, reads = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local mentions, own, deleted = KEYS[5], KEYS[6], KEYS[7]
local person, wanted, channel, most_told = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])

local record = redis.call("HGET", members, person)
if not record then return { -1, 0 } end
local head = redis.call("HMGET", chat, "seq", "n", "cut", "base", "due_at", "settings")
local last, n, cut, base = tonumber(head[1]), tonumber(head[2]), tonumber(head[3]), tonumber(head[4])
local before = tonumber(redis.call("ZSCORE", reads, person))
local seq = math.min(wanted, last)
local is_due = 0
if string.match(head[6], "^%S+ %S+ %S+ %S+ (%S+)") ~= "0" then
  local time = redis.call("TIME")
  is_due = time[1] * 1000 >= tonumber(head[5] or 0) and 1 or 0
end
if seq <= before then return { before, is_due } end

local begin, joined, read_n, rest = string.match(record, "^(%S+ %S+) (%S+ %S+) (%S+) (.*)$")
if seq < last then
  -- What was deleted has an ordinal as well, and no entry that tells it.
  local entry = redis.call("XREVRANGE", messages, seq, cut + 1, "COUNT", 1)[1]
  local from = entry and string.match(entry[1], "%d+") or math.min(cut, seq)
  n = (entry and tonumber(entry[2][8]) or base) + redis.call("ZCOUNT", deleted, "(" .. from, seq)
end
local words = { begin, joined, math.max(n, tonumber(read_n)), rest }
-- What frees memory comes first: so a server that is full takes all of it.
for _, key in ipairs({ mentions .. person, own .. person }) do
  redis.call("ZREMRANGEBYSCORE", key, "-inf", seq)
end
redis.call("HSET", members, person, table.concat(words, " "))
redis.call("ZADD", reads, "XX", "GT", seq, person)
if redis.call("HLEN", members) <= most_told then
  redis.call("HINCRBY", chat, "revision", 1)
  redis.call("PUBLISH", channel, "read")
end
return { seq, is_due }
