-- Give a lock that the caller holds another time to live. Repeated, time is added once.
-- KEYS[1] lock   STRING token of the holder
-- KEYS[2] state  HASH fence and figures
-- KEYS[3] held   ZSET lock by the millisecond its time ends
-- ARGV[1] token
-- ARGV[2] milliseconds
-- ARGV[3] name of this request if they are added to those left, else ""
-- Returns the milliseconds left; 0 if this token does not hold it, or holds it for ever
local lock, state, held = KEYS[1], KEYS[2], KEYS[3]
local token, ttl, request = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local DAY = 86400000 -- milliseconds

if redis.call("GET", lock) ~= token then return 0 end
local left = redis.call("PTTL", lock)
if left < 0 then return 0 end

if request ~= "" then
  if redis.call("HGET", state, "extension") == request then return left end
  redis.call("HSET", state, "extension", request)
  ttl = ttl + left
end
local time = redis.call("TIME")
redis.call("PEXPIRE", lock, ttl)
redis.call("PEXPIRE", state, ttl + DAY)
redis.call("ZADD", held, string.format("%.0f", time[1] * 1000 + time[2] / 1000 + ttl), lock)
return ttl
