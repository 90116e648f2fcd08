-- Erase what a person has said in a chat; a part of the history at a time.
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
local entries, gone, bytes = redis.call("XRANGE", messages, from, "+", "COUNT", most), 0, 0
for _, entry in ipairs(entries) do
  local fields, seq = entry[2], string.match(entry[1], "%d+")
  if fields[2] == person then
    local named, at = fields[10], 1
    local digest = string.sub(redis.sha1hex(person .. "\0" .. fields[4]), 1, 16)
    -- What frees memory comes first: so a server that is full takes all of it.
    redis.call("XDEL", messages, entry[1])
    redis.call("ZADD", deleted, seq, seq .. " " .. digest .. " " .. fields[6])
    while at <= #named do
      local colon = string.find(named, ":", at, true)
      local length = colon and tonumber(string.sub(named, at, colon - 1))
      if not length then break end -- it is damaged
      redis.call("ZREM", mentions .. string.sub(named, colon + 1, colon + length), seq)
      at = colon + length + 1
    end
    gone, bytes = gone + 1, bytes + #person + #fields[4] + #named + #fields[12]
  end
end
if gone > 0 then
  redis.call("DEL", own .. person)
  redis.call("HINCRBY", chat, "bytes", -bytes)
  redis.call("PUBLISH", channel, "erased")
end
local on = #entries == most and string.match(entries[most][1], "%d+") + 1 or 0
-- Where nothing went, the same is found again.
if gone > 0 then redis.call("SET", calls .. call, gone .. " " .. on, "PX", 60000) end
return { gone, on }
