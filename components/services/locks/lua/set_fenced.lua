-- Write a value, unless one with a newer fence was written before.
-- KEYS[1] value  STRING
-- KEYS[2] fence  STRING, 19 digits
-- ARGV[1] fence of the writer: 19 digits, so that comparing them as text is exact (numbers are, only to 2^53)
-- ARGV[2] value
-- ARGV[3] ms until the value expires; 0: never
-- ARGV[4] ms that its fence outlives it
-- Returns the newer fence, or nil when the value was written
local value, fence = KEYS[1], KEYS[2]
local mine, content, ttl, keep = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])

local newest = redis.call("GET", fence)
if newest and newest > mine then
  return newest
end
if ttl > 0 then
  redis.call("SET", fence, mine, "PX", ttl + keep)
  redis.call("SET", value, content, "PX", ttl)
else
  redis.call("SET", fence, mine)
  redis.call("SET", value, content)
end
return false
