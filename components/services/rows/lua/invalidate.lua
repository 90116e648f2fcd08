-- Let nobody read rows of one bucket as they were, nor store what was loaded until now. Idempotent by nature.
-- KEYS[1] schedule  ZSET member by the microsecond it is due
-- KEYS[2] row       STRING, prefix to a member
-- KEYS[3] claim     STRING, prefix to a member: without it a load that is under way is not stored
-- ARGV[1..] members
-- Returns 1
local schedule, row, claim = KEYS[1], KEYS[2], KEYS[3]

local time = redis.call("TIME")
local now = string.format("%.0f", time[1] * 1000000 + time[2])
for at = 1, #ARGV do
  local member = ARGV[at]
  redis.call("UNLINK", row .. member, claim .. member)
  if redis.call("ZSCORE", schedule, member) then redis.call("ZADD", schedule, "LT", now, member) end
end
return 1
