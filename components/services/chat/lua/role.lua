-- Give a member another role.
-- KEYS[1] chat      HASH, what the chat is and how far it has come
-- KEYS[2] messages  STREAM <seq>-0 -> message
-- KEYS[3] members   HASH person -> words: role, number, joined at, sees after, ordinal read, muted until, call
-- KEYS[4] calls     prefix to a call: STRING, what it was answered
-- ARGV[1] person
-- ARGV[2] letter of the role
-- ARGV[3] by whom; "" for the system
-- ARGV[4] call
-- ARGV[5] body of the event
-- ARGV[6] channel of the chat
-- Returns "done"; "nothing"; "unknown"; "denied"; "absent"; "last", of the only owner
local chat, messages, members, calls = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local person, letter, by, call, body, channel = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]

local answered = redis.call("GET", calls .. call)
if answered then return answered end
local head = redis.call("HMGET", chat, "seq", "n", "at", "bytes", "owners", "gone")
local record, actor = redis.call("HGET", members, person), redis.call("HGET", members, by)
if not head[1] or head[6] or (by ~= "" and not actor) then return "unknown" end
if by ~= "" and string.sub(actor, 1, 1) ~= "o" then return "denied" end
if not record then return "absent" end
local before = string.sub(record, 1, 1)
if before == letter then return "nothing" end
if before == "o" and head[5] == "1" then return "last" end

local time = redis.call("TIME")
local now = math.max(time[1] * 1000 + math.floor(time[2] / 1000), head[3])
local seq, owners = head[1] + 1, head[5] + (letter == "o" and 1 or 0) - (before == "o" and 1 or 0)
redis.call("HSET", members, person, letter .. string.sub(record, 2))
-- A stream that was too old as a whole has gone by itself.
if redis.call("EXISTS", messages) == 0 then redis.call("HSET", chat, "cut", head[1], "base", head[2], "bytes", 0) end
redis.call("XADD", messages, seq .. "-0", "s", "", "c", call, "t", now, "n", head[2], "m", "", "b", body)
redis.call("HSET", chat, "seq", seq, "at", now, "owners", owners)
redis.call("HINCRBY", chat, "bytes", #call + #body)
redis.call("SET", calls .. call, "done", "PX", 60000)
redis.call("PUBLISH", channel, seq)
return "done"
