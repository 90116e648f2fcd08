-- Delete a message; an event tells those who have it.
-- KEYS[1] chat      HASH, what the chat is and how far it has come
-- KEYS[2] messages  STREAM <seq>-0 -> message
-- KEYS[3] members   HASH person -> words: role, number, joined at, sees after, ordinal read, muted until, call
-- KEYS[4] mentions  prefix to a person: ZSET seqs that mention him, unread
-- KEYS[5] own       prefix to a person: ZSET seqs that he said after what he has read
-- KEYS[6] deleted   ZSET words of a deleted message (seq, digest, sent at) by seq
-- KEYS[7] calls     prefix to a call: STRING, what it was answered
-- ARGV[1] seq
-- ARGV[2] by whom; "" for the system
-- ARGV[3] call
-- ARGV[4] body of the event
-- ARGV[5] channel of the chat
-- Returns "done"; "unknown"; "denied"; "nowhere"
local chat, messages, members, mentions, own = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local deleted, calls = KEYS[6], KEYS[7]
local wanted, by, call, body, channel = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local answered = redis.call("GET", calls .. call)
if answered then return answered end
local actor = redis.call("HGET", members, by)
local head = redis.call("HMGET", chat, "seq", "n", "at", "bytes", "gone", "settings")
if not head[1] or head[5] or (by ~= "" and not actor) then return "unknown" end
local seen = by == "" and 0 or tonumber(string.match(actor, "^%S+ %S+ %S+ (%S+)"))
local entry = tonumber(wanted) > seen and redis.call("XRANGE", messages, wanted, wanted)[1]
local time, age = redis.call("TIME"), tonumber(string.match(head[6], "^%S+ %S+ %S+ (%S+)"))
local now = math.max(time[1] * 1000 + math.floor(time[2] / 1000), head[3])
if not entry or entry[2][2] == "" or (age > 0 and entry[2][6] + age <= now) then return "nowhere" end
local sender, client_id, sent_at = entry[2][2], entry[2][4], entry[2][6]
if by ~= "" and by ~= sender and string.sub(actor, 1, 1) == "u" then return "denied" end

local named, seq = entry[2][10], head[1] + 1
local bytes = head[4] - #sender - #client_id - #named - #entry[2][12] + #call + #body
local digest = string.sub(redis.sha1hex(sender .. "\0" .. client_id), 1, 16)
-- What frees memory comes first: so a server that is full takes all of it.
redis.call("XDEL", messages, entry[1])
redis.call("ZADD", deleted, wanted, wanted .. " " .. digest .. " " .. sent_at)
redis.call("ZREM", own .. sender, wanted)
local at = 1
while at <= #named do
  local colon = string.find(named, ":", at, true)
  local length = colon and tonumber(string.sub(named, at, colon - 1))
  if not length then break end -- it is damaged
  redis.call("ZREM", mentions .. string.sub(named, colon + 1, colon + length), wanted)
  at = colon + length + 1
end
redis.call("XADD", messages, seq .. "-0", "s", "", "c", call, "t", now, "n", head[2], "m", "", "b", body)
redis.call("HSET", chat, "seq", seq, "at", now, "bytes", bytes)
redis.call("SET", calls .. call, "done", "PX", 60000)
redis.call("PUBLISH", channel, seq)
return "done"
