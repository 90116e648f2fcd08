-- Mute a member, for a time or until that is taken back; or take it back, also from who has left while muted.
-- KEYS[1] chat      HASH, what the chat is and how far it has come
-- KEYS[2] messages  STREAM <seq>-0 -> message
-- KEYS[3] members   HASH person -> words: role, number, joined at, sees after, ordinal read, muted until, call
-- KEYS[4] calls     prefix to a call: STRING, what it was answered
-- KEYS[5] muted     ZSET person who left while they were muted by the millisecond until when
-- ARGV[1] person
-- ARGV[2] milliseconds; -1 until it is taken back, 0 to take it back
-- ARGV[3] by whom; "" for the system
-- ARGV[4] call
-- ARGV[5] body of the event, without its last part: until when
-- ARGV[6] channel of the chat
-- Returns "done"; "nothing"; "unknown"; "denied"; "absent"
local chat, messages, members, calls, mutes = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local person, muted, by, call, event, channel = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local RANK = { o = 3, m = 2, u = 1 }

local answered = redis.call("GET", calls .. call)
if answered then return answered end
local head = redis.call("HMGET", chat, "seq", "n", "at", "bytes", "gone")
local record, actor = redis.call("HGET", members, person), redis.call("HGET", members, by)
if not head[1] or head[5] or (by ~= "" and not actor) then return "unknown" end
local rank = by == "" and 4 or RANK[string.sub(actor, 1, 1)]
if rank <= (record and RANK[string.sub(record, 1, 1)] or 1) then return "denied" end
if not record and not (muted == 0 and redis.call("ZREM", mutes, person) == 1) then return "absent" end
local begin, before, last = string.match(record or "", "^(%S+ %S+ %S+ %S+ %S+) (%S+) (.*)$")
if muted == 0 and before == "0" then return "nothing" end

local time = redis.call("TIME")
local now = math.max(time[1] * 1000 + math.floor(time[2] / 1000), head[3])
local till = string.format("%.0f", muted > 0 and now + muted or muted)
local detail = muted > 0 and till or ""
local seq, body = head[1] + 1, event .. #detail .. ":" .. detail
if record then redis.call("HSET", members, person, begin .. " " .. till .. " " .. last) end
-- A stream that was too old as a whole has gone by itself.
if redis.call("EXISTS", messages) == 0 then redis.call("HSET", chat, "cut", head[1], "base", head[2], "bytes", 0) end
redis.call("XADD", messages, seq .. "-0", "s", "", "c", call, "t", now, "n", head[2], "m", "", "b", body)
redis.call("HSET", chat, "seq", seq, "at", now)
redis.call("HINCRBY", chat, "bytes", #call + #body)
redis.call("SET", calls .. call, "done", "PX", 60000)
redis.call("PUBLISH", channel, seq)
return "done"
