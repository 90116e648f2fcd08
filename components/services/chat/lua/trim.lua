-- Let the oldest of a chat go, by its limits or up to a seq; some of it at a time.
-- KEYS[1] chat      HASH, what the chat is and how far it has come
-- KEYS[2] messages  STREAM <seq>-0 -> message
-- KEYS[3] reads     ZSET person by the seq up to which he has read
-- KEYS[4] sent      prefix to a part: HASH digest of sender and client id -> seq
-- KEYS[5] deleted   ZSET words of a deleted message (seq, digest, sent at) by seq
-- KEYS[6] calls     prefix to a call: STRING, what it was answered
-- ARGV[1] seq up to which all goes; 0 for what the limits say
-- ARGV[2] call
-- ARGV[3] so many at most
-- ARGV[4] channel of the chat
-- Returns how many went, and 1 if there are more
local chat, messages, reads, sent, deleted, calls = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local before, call, most_now, channel = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), ARGV[4]

local answered = redis.call("GET", calls .. call)
if answered then
  local gone, more = string.match(answered, "(%d+) (%d+)")
  return { tonumber(gone), tonumber(more) }
end
local head = redis.call("HMGET", chat, "seq", "n", "at", "bytes", "cut", "base", "level", "settings", "gone")
if not head[1] or head[9] then return { 0, 0 } end
local bytes, cut, base, level = tonumber(head[4]), head[5], head[6], tonumber(head[7])
local most, most_bytes, age, drop = string.match(head[8], "^%S+ (%S+) (%S+) (%S+) (%S+)")
most, most_bytes, age, drop = tonumber(most), tonumber(most_bytes), tonumber(age), tonumber(drop)
local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function forget(seq, digest)
  local number = tonumber(string.sub(digest, 1, 8), 16)
  for each = level, 0, -1 do
    local part = sent .. each .. ":" .. number % 4 ^ each
    if redis.call("HGET", part, digest) == seq then return redis.call("HDEL", part, digest) end
  end
end

local slowest = tonumber(redis.call("ZRANGE", reads, 0, 0, "WITHSCORES")[2] or 0)
local live, gone, more, due_at = redis.call("XLEN", messages), 0, 1, now + math.max(age, drop) / 100
local dead = redis.call("ZCARD", deleted)
-- Deleted messages are remembered, too: with what is there, at most twice as many as the chat keeps.
local function is_crowded(after)
  return dead > most and live + redis.call("ZCOUNT", deleted, "(" .. after, "+inf") > 2 * most
end
for _, entry in ipairs(redis.call("XRANGE", messages, "-", "+", "COUNT", most_now)) do
  local seq, fields = string.match(entry[1], "%d+"), entry[2]
  local at = tonumber(fields[6]) or 0 -- a damaged one goes with what is old
  local is_old = age > 0 and at + age <= now
  local is_read = drop > 0 and at + drop <= now and tonumber(seq) <= slowest
  local is_too_much = live > most or bytes > most_bytes or is_crowded(seq)
  if not (tonumber(seq) <= before or is_too_much or is_old or is_read) then
    more = 0
    break
  end
  if fields[2] ~= "" and fields[4] then
    forget(seq, string.sub(redis.sha1hex(fields[2] .. "\0" .. fields[4]), 1, 16))
  end
  for each = 2, 12, 2 do
    local is_text = each ~= 6 and each ~= 8
    bytes = bytes - (is_text and #(fields[each] or "") or 0)
  end
  live, gone = live - 1, gone + 1
  cut, base = seq, tonumber(fields[8]) and fields[8] or base
end
if gone > 0 then redis.call("XTRIM", messages, "MINID", "=", cut + 1) end
if live == 0 then
  more = 0
  -- By itself the stream goes when the last of it is too old.
  if age > 0 and head[3] + age <= now then cut, base, bytes = head[1], head[2], 0 end
end
if more == 0 and is_crowded(cut) then
  local first = redis.call("XRANGE", messages, "-", "+", "COUNT", 1)[1]
  cut = first and string.match(first[1], "%d+") - 1 or head[1]
  base = first and first[2][8] - (first[2][2] ~= "" and 1 or 0) or head[2]
end
for _, words in ipairs(redis.call("ZRANGEBYSCORE", deleted, "-inf", cut)) do
  local seq, digest = string.match(words, "^(%d+) (%x+) ")
  if seq then forget(seq, digest) end
end
redis.call("ZREMRANGEBYSCORE", deleted, "-inf", cut)
if age > 0 then redis.call("PEXPIRE", messages, math.max(1, head[3] + age - now)) end
redis.call("HSET", chat, "bytes", bytes, "cut", cut, "base", base, "due_at", math.ceil(due_at))
-- Whoever had not read what is gone has other counts now, which is news, though it has no seq.
if tonumber(cut) > slowest and tonumber(cut) > tonumber(head[5]) then
  redis.call("HINCRBY", chat, "revision", 1)
  if before > 0 then redis.call("PUBLISH", channel, "trimmed") end
end
redis.call("SET", calls .. call, gone .. " " .. more, "PX", 60000)
return { gone, more }
