-- Delete a value, unless one with a newer fence was written before; the fence stays for a while.
-- KEYS[1] value  STRING
-- KEYS[2] fence  STRING, 19 digits
-- ARGV[1] fence of the writer: 19 digits, so that comparing them as text is exact (numbers are, only to 2^53)
-- ARGV[2] ms that the fence is kept
-- Returns the newer fence, or nil when there is no value any more
local value, fence = KEYS[1], KEYS[2]
local mine, keep = ARGV[1], ARGV[2]

local newest = redis.call("GET", fence)
if newest and newest > mine then
  return newest
end
redis.call("DEL", value) -- first: a full server lets a script begin with what frees memory
redis.call("SET", fence, mine, "PX", keep)
return false
