-- Erase what a person has said in a chat; a part of the history at a time. An event tells those who have it.
-- KEYS[1] chat      HASH, what the chat is and how far it has come
-- KEYS[2] messages  STREAM <seq>-0 -> message
-- KEYS[3] mentions  prefix to a person: ZSET seqs that mention him, unread
-- KEYS[4] own       prefix to a person: ZSET seqs that he said after what he has read
-- KEYS[5] deleted   ZSET words of a deleted message (seq, digest, sent at) by seq
-- KEYS[6] calls     prefix to a call: STRING, what it was answered
-- ARGV[1] person
-- ARGV[2] seq at which to begin
-- ARGV[3] so many entries are looked at
-- ARGV[4] call
-- ARGV[5] channel of the chat
-- Returns how many messages are gone, and the seq at which to go on; 0 at the end
local chat, messages, mentions, own, deleted, calls = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local person, from, most, call, channel = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]

local answered = redis.call("GET", calls .. call)
if answered then
  local gone, on = string.match(answered, "(%d+) (%d+)")
  return { tonumber(gone), tonumber(on) }
end
local entries, gone, bytes, last = redis.call("XRANGE", messages, from, "+", "COUNT", most), 0, 0, 0
for _, entry in ipairs(entries) do
  local fields, seq = entry[2], string.match(entry[1], "%d+")
  if fields[2] == person then
    local named, at = fields[10], 1
    local digest = string.sub(redis.sha1hex(person .. "\0" .. fields[4]), 1, 16)
    -- What frees memory comes first: so a server that is full takes all of it.
    redis.call("XDEL", messages, entry[1])
    redis.call("ZREM", own .. person, seq)
    redis.call("ZADD", deleted, seq, seq .. " " .. digest .. " " .. fields[6])
    while at <= #named do
      local colon = string.find(named, ":", at, true)
      local length = colon and tonumber(string.sub(named, at, colon - 1))
      if not length then break end -- it is damaged
      redis.call("ZREM", mentions .. string.sub(named, colon + 1, colon + length), seq)
      at = colon + length + 1
    end
    gone, bytes, last = gone + 1, bytes + #person + #fields[4] + #named + #fields[12], tonumber(seq)
  end
end
if gone > 0 then
  -- The event of the first part tells of all that was said before it. Later parts change counts, which is news, too.
  local noted = calls .. "erased/" .. redis.sha1hex(person)
  if last > tonumber(redis.call("GET", noted) or 0) then
    local head, time = redis.call("HMGET", chat, "seq", "n", "at", "settings"), redis.call("TIME")
    local now = math.max(time[1] * 1000 + math.floor(time[2] / 1000), head[3])
    local told, body = head[1] + 1, "e6:erased0:" .. #person .. ":" .. person .. "0:"
    redis.call("XADD", messages, told .. "-0", "s", "", "c", call, "t", now, "n", head[2], "m", "", "b", body)
    redis.call("HSET", chat, "seq", told, "at", now)
    local age = tonumber(string.match(head[4], "^%S+ %S+ %S+ (%S+)"))
    if age > 0 then redis.call("PEXPIRE", messages, age) end
    redis.call("SET", noted, told, "PX", 60000)
    bytes = bytes - #call - #body
  else
    redis.call("HINCRBY", chat, "revision", 1)
  end
  redis.call("HINCRBY", chat, "bytes", 0 - bytes) -- what is written as "-0" is refused
  redis.call("PUBLISH", channel, "erased")
end
local on = #entries == most and string.match(entries[most][1], "%d+") + 1 or 0
-- Where nothing went, the same is found again.
if gone > 0 then redis.call("SET", calls .. call, gone .. " " .. on, "PX", 60000) end
return { gone, on }
