-- Let the lease of a permit begin anew, unless it has ended. Idempotent by nature.
-- KEYS[1] holders  ZSET permit by the microsecond its lease ends
-- KEYS[2] ended    STRING, prefix to a permit: the call that ended it
-- ARGV[1] permit
-- ARGV[2] lease, microseconds
-- Returns "refreshed"; or the name of the call that ended the permit; or "" if its lease ran out
local holders, ended = KEYS[1], KEYS[2]
local permit, lease = ARGV[1], tonumber(ARGV[2])
local KEPT = 30 * 86400000 -- milliseconds, as in acquire.lua

local time = redis.call("TIME")
local now = time[1] * 1000000 + time[2]

if tonumber(redis.call("ZSCORE", holders, permit) or 0) <= now then
  return redis.call("GET", ended .. permit) or ""
end
redis.call("PEXPIRE", holders, KEPT) -- first: a full server lets a script begin with what needs no memory
redis.call("ZADD", holders, "XX", string.format("%.0f", now + lease), permit)
return "refreshed"
