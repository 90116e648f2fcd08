-- Give a lock that the caller holds another time to live. Repeated, time is added once.
-- KEYS[1] lock   STRING token of the holder
-- KEYS[2] state  HASH figures, and who holds it by a token of their own
-- KEYS[3] held   ZSET lock by the millisecond its time ends; below zero the fences, as in acquire.lua
-- ARGV[1] token
-- ARGV[2] asker: names the acquisition; the token itself, unless the caller chose that
-- ARGV[3] milliseconds; if they, or what they add up to, are none or less, its time is over
-- ARGV[4] name of this request if a repeated one would have another effect, else ""
-- ARGV[5] "adds" if the milliseconds are added to those left; "replaces"; "anew", also of one that is held for ever
-- Returns the milliseconds left; 0 if this request ended it; -1 if it is not held so, or has no end to move
local lock, state, held = KEYS[1], KEYS[2], KEYS[3]
local token, asker, milliseconds, request, how = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]
local DAY, HOUR = 86400000, 3600000 -- milliseconds

local is_mine = redis.call("GET", lock) == token
  and (asker == token or redis.call("HGET", state, "by") == asker)
local left = is_mine and redis.call("PTTL", lock) or -1
if not is_mine or left < 0 and how ~= "anew" then
  return request ~= "" and redis.call("HGET", state, "ended") == request and 0 or -1
end

if request ~= "" and redis.call("HGET", state, "extension") == request then return left end
local ttl = math.max(how == "adds" and milliseconds + left or milliseconds, 0)
redis.call("PEXPIRE", lock, ttl) -- first: a full server lets a script begin with what needs no memory
if request ~= "" then redis.call("HSET", state, ttl > 0 and "extension" or "ended", request) end
redis.call("PEXPIRE", state, ttl + DAY)
local time = redis.call("TIME")
redis.call("ZADD", held, string.format("%.0f", time[1] * 1000 + time[2] / 1000 + ttl), lock)
local stays = redis.call("PTTL", held)
if stays >= 0 and stays < ttl + DAY then redis.call("PEXPIRE", held, ttl + DAY + HOUR) end
return ttl
