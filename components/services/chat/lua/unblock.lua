-- Let a person who was blocked come back, if he wants and is let in.
-- KEYS[1] chat      HASH, what the chat is and how far it has come
-- KEYS[2] messages  STREAM <seq>-0 -> message
-- KEYS[3] members   HASH person -> words: role, number, joined at, sees after, ordinal read, muted until, call
-- KEYS[4] blocked   HASH person who may not come back -> since when
-- KEYS[5] calls     prefix to a call: STRING, what it was answered
-- ARGV[1] person
-- ARGV[2] by whom; "" for the system
-- ARGV[3] call
-- ARGV[4] body of the event
-- ARGV[5] channel of the chat
-- Returns "done"; "nothing"; "unknown"; "denied"
local chat, messages, members, blocked, calls = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local person, by, call, body, channel = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local answered = redis.call("GET", calls .. call)
if answered then return answered end
local head, actor = redis.call("HMGET", chat, "seq", "n", "at", "bytes", "gone"), redis.call("HGET", members, by)
if not head[1] or head[5] or (by ~= "" and not actor) then return "unknown" end
if by ~= "" and string.sub(actor, 1, 1) == "u" then return "denied" end
if redis.call("HDEL", blocked, person) == 0 then return "nothing" end

local time = redis.call("TIME")
local now = math.max(time[1] * 1000 + math.floor(time[2] / 1000), head[3])
local seq = head[1] + 1
-- A stream that was too old as a whole has gone by itself.
if redis.call("EXISTS", messages) == 0 then redis.call("HSET", chat, "cut", head[1], "base", head[2], "bytes", 0) end
redis.call("XADD", messages, seq .. "-0", "s", "", "c", call, "t", now, "n", head[2], "m", "", "b", body)
redis.call("HSET", chat, "seq", seq, "at", now)
redis.call("HINCRBY", chat, "bytes", #call + #body)
redis.call("SET", calls .. call, "done", "PX", 60000)
redis.call("PUBLISH", channel, seq)
return "done"
