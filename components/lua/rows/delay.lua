-- Let rows of one bucket that are on the schedule be loaded as often as this says. Idempotent by nature.
-- KEYS[1] schedule  ZSET member by the microsecond it is due
-- KEYS[2] delays    HASH member -> microseconds between two loads
-- KEYS[3] claim     STRING, prefix to a member
-- ARGV[1] microseconds
-- ARGV[2..] members
-- Returns of each member 1 if it is on the schedule, 0 if not
local schedule, delays, claim = KEYS[1], KEYS[2], KEYS[3]
local delay = ARGV[1]

local time = redis.call("TIME")
local due = string.format("%.0f", time[1] * 1000000 + time[2] + delay)
local answer = {}
for at = 2, #ARGV do
  local member = ARGV[at]
  local is_there = redis.call("ZSCORE", schedule, member)
  if is_there then
    redis.call("HSET", delays, member, delay)
    -- who loads it heeds the new delay
    if redis.call("EXISTS", claim .. member) == 0 then redis.call("ZADD", schedule, "LT", due, member) end
  end
  answer[#answer + 1] = is_there and 1 or 0
end
return answer
