-- Change one fact of a chat: its title, its settings, whether it is closed.
-- KEYS[1] chat      HASH, what the chat is and how far it has come
-- KEYS[2] messages  STREAM <seq>-0 -> message
-- KEYS[3] members   HASH person -> words: role, number, joined at, sees after, ordinal read, muted until, call
-- KEYS[4] calls     prefix to a call: STRING, what it was answered
-- KEYS[5] sent      prefix to a part: HASH digest of sender and client id -> seq
-- KEYS[6] reads     ZSET person by the seq up to which they have read
-- KEYS[7] mentions  prefix to a person: ZSET seqs that mention them, unread
-- KEYS[8] own       prefix to a person: ZSET seqs that they said after what they have read
-- ARGV[1] name of the fact
-- ARGV[2] what it must be now; "*" for anything
-- ARGV[3] what it shall be; "" for nothing
-- ARGV[4] letters of the roles that may
-- ARGV[5] by whom; "" for the system
-- ARGV[6] call
-- ARGV[7] body of the event
-- ARGV[8] channel of the chat
-- Returns "done"; "nothing"; "unknown"; "denied"; "other", if it is not what it must be
local chat, messages, members, calls, sent, reads = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local mentions, own = KEYS[7], KEYS[8]
local name, must, value, letters, by, call, body = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
local channel = ARGV[8]

local answered = redis.call("GET", calls .. call)
if answered then return answered end
local head = redis.call("HMGET", chat, "seq", "n", "at", "bytes", "gone", name, "level")
local actor, before = redis.call("HGET", members, by), head[6] or ""
if not head[1] or head[5] or (by ~= "" and not actor) then return "unknown" end
if by ~= "" and not string.find(letters, string.sub(actor, 1, 1), 1, true) then return "denied" end
if before == value then return "nothing" end
if must ~= "*" and must ~= before then return "other" end

local time = redis.call("TIME")
local now = math.max(time[1] * 1000 + math.floor(time[2] / 1000), head[3])
local seq = head[1] + 1
-- A stream that was too old as a whole has gone by itself.
if redis.call("EXISTS", messages) == 0 then redis.call("HSET", chat, "cut", head[1], "base", head[2], "bytes", 0) end
redis.call("XADD", messages, seq .. "-0", "s", "", "c", call, "t", now, "n", head[2], "m", "", "b", body)
redis.call("HSET", chat, "seq", seq, "at", now, name, value)
redis.call("HINCRBY", chat, "bytes", #call + #body)
if value == "" then redis.call("HDEL", chat, name) end
if name == "settings" then
  redis.call("HDEL", chat, "due_at")
  -- Whatever is counted or recognised by a message must live as long as the message does.
  local age, keys = tonumber(string.match(value, "^%S+ %S+ %S+ (%S+)")), { messages }
  for part = 0, head[7] do
    for each = 0, 4 ^ part - 1 do table.insert(keys, sent .. part .. ":" .. each) end
  end
  for _, person in ipairs(redis.call("ZRANGE", reads, 0, -1)) do
    table.insert(keys, mentions .. person)
    table.insert(keys, own .. person)
  end
  for _, key in ipairs(keys) do
    if age > 0 then redis.call("PEXPIRE", key, age) else redis.call("PERSIST", key) end
  end
end
redis.call("SET", calls .. call, "done", "PX", 60000)
redis.call("PUBLISH", channel, seq)
return "done"
