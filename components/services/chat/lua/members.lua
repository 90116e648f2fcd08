-- Who is in a chat, and how far each has read. Changes nothing.
-- KEYS[1] chat      HASH, what the chat is and how far it has come
-- KEYS[2] members   HASH person -> words: role, number, joined at, sees after, ordinal read, muted until, call
-- KEYS[3] reads     ZSET person by the seq up to which he has read
-- KEYS[4] mentions  prefix to a person: ZSET seqs that mention him, unread
-- KEYS[5] own       prefix to a person: ZSET seqs that he said after what he has read
-- KEYS[6] deleted   ZSET words of a deleted message by seq
-- KEYS[7] messages  STREAM <seq>-0 -> message
-- ARGV[1] person who asks; "" for who may see all
-- Returns the millisecond, and per member: person, words, seq, unread, mentions; nothing for a stranger
local chat, members, reads, mentions, own, deleted = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local messages = KEYS[7]
local person = ARGV[1]

local head = redis.call("HMGET", chat, "n", "cut", "base", "at", "settings", "gone", "seq")
if not head[1] or head[6] then return {} end
if person ~= "" and redis.call("HEXISTS", members, person) == 0 then return {} end
local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local n, cut, base = tonumber(head[1]) or 0, tonumber(head[2]) or 0, tonumber(head[3]) or 0
local age = tonumber(string.match(head[5] or "", "^%S+ %S+ %S+ (%S+)")) or 0
local low, high = cut, (tonumber(head[7]) or cut) + 1
-- The last seq that is too old, and its ordinal: found by halves, since instants grow with the sequence.
while age > 0 and high - low > 1 do
  local middle = math.floor((low + high) / 2)
  local entry = redis.call("XRANGE", messages, middle, high, "COUNT", 1)[1]
  if entry and (tonumber(entry[2][6]) or 0) + age <= now then
    low, base = tonumber(string.match(entry[1], "%d+")), tonumber(entry[2][8]) or base
  else
    high = middle
  end
end
if age > 0 and (tonumber(head[4]) or 0) + age <= now then cut, base = tonumber(head[7]) or cut, n end
local found, all = { now }, redis.call("ZRANGE", reads, 0, -1, "WITHSCORES")
for each = 1, #all, 2 do
  local who, read = all[each], tonumber(all[each + 1])
  local record, after = redis.call("HGET", members, who) or "", "(" .. math.max(read, cut, low)
  local read_n = read > math.max(cut, low) and tonumber(string.match(record, "^%S+ %S+ %S+ %S+ (%S+)")) or base
  local unread = n - read_n - redis.call("ZCOUNT", own .. who, after, "+inf")
    - redis.call("ZCOUNT", deleted, after, "+inf")
  local mentioned = redis.call("ZCOUNT", mentions .. who, after, "+inf")
  table.insert(found, { who, record, read, unread, mentioned })
end
return found
