-- Forget rows of one bucket: when they are due, what they are, and who loads them. Idempotent by nature.
-- KEYS[1] schedule  ZSET member by the microsecond it is due
-- KEYS[2] delays    HASH member -> microseconds between two loads
-- KEYS[3] failures  HASH member -> count, microsecond, error
-- KEYS[4] row       STRING, prefix to a member
-- KEYS[5] claim     STRING, prefix to a member: without it a load that is under way is not stored
-- ARGV[1..] members
-- Returns 1
local schedule, delays, failures, row, claim = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]

for at = 1, #ARGV do
  local member = ARGV[at]
  redis.call("ZREM", schedule, member)
  for _, hash in ipairs({ delays, failures }) do redis.call("HDEL", hash, member) end
  redis.call("UNLINK", row .. member, claim .. member)
end
return 1
