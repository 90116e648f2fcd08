-- Forget rows of one bucket: when they are due, what they are, and who loads them. Idempotent by nature.
-- KEYS[1] schedule  ZSET member by the microsecond it is due
-- KEYS[2] delays    HASH member -> microseconds between two loads
-- KEYS[3] failures  HASH member -> count, microsecond, error
-- KEYS[4] row       STRING, prefix to a member
-- KEYS[5] claim     STRING, prefix to a member: without it a load that is under way is not stored
-- KEYS[6] counts    HASH name -> how many are on the schedule; name:failing -> how many of them fail
-- ARGV[1..] members
-- Returns 1
local schedule, delays, failures, row, claim, counts = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]

local function count_one_less(member, suffix)
  local what = string.match(member, "^[^:]*") .. suffix
  if redis.call("HINCRBY", counts, what, -1) <= 0 then redis.call("HDEL", counts, what) end
end

for at = 1, #ARGV do
  local member = ARGV[at]
  if redis.call("ZREM", schedule, member) == 1 then count_one_less(member, "") end
  if redis.call("HDEL", failures, member) == 1 then count_one_less(member, ":failing") end
  redis.call("HDEL", delays, member)
  redis.call("UNLINK", row .. member, claim .. member)
end
return 1
