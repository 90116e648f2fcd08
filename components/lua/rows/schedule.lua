-- Let rows of one bucket be loaded again and again, the new ones now. Idempotent by nature.
-- KEYS[1] schedule  ZSET member by the microsecond it is due
-- KEYS[2] delays    HASH member -> microseconds between two loads
-- KEYS[3] claim     STRING, prefix to a member
-- KEYS[4] counts    HASH name -> how many are on the schedule
-- ARGV[1..] member and microseconds, in turn
-- Returns 1
local schedule, delays, claim, counts = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

local time = redis.call("TIME")
local now = time[1] * 1000000 + time[2]
for at = 1, #ARGV, 2 do
  local member, delay = ARGV[at], ARGV[at + 1]
  redis.call("HSET", delays, member, delay)
  if not redis.call("ZSCORE", schedule, member) then
    redis.call("ZADD", schedule, string.format("%.0f", now), member)
    redis.call("HINCRBY", counts, string.match(member, "^[^:]*"), 1)
  elseif redis.call("EXISTS", claim .. member) == 0 then -- else who loads it heeds the new delay
    redis.call("ZADD", schedule, "LT", string.format("%.0f", now + delay), member)
  end
end
return 1
