-- Let rows of one bucket be loaded again and again, the new ones now. Idempotent by nature.
-- KEYS[1] schedule  ZSET member by the microsecond it is due
-- KEYS[2] delays    HASH member -> microseconds between two loads
-- KEYS[3] row       STRING, prefix to a member: JSON
-- KEYS[4] claim     STRING, prefix to a member: microseconds of the claim and of its end, token
-- KEYS[5] counts    HASH name -> how many are on the schedule
-- ARGV[1] microseconds that a row of the schedule is good beyond its delay
-- ARGV[2..] member and microseconds, in turn
-- Returns 1
local schedule, delays, row, claim, counts = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local grace = tonumber(ARGV[1])

local time = redis.call("TIME")
local now = time[1] * 1000000 + time[2]
local function text(number) return string.format("%.0f", number) end

-- A row that was good for longer is now good for as long as the delay says, whether or not a daemon runs.
local function shorten(member, delay)
  local since, till = string.match(redis.call("GETRANGE", row .. member, 0, 99), "^%[(%d+),(%d+),")
  if since and since + delay + grace < tonumber(till) then
    redis.call("SETRANGE", row .. member, #since + 2, text(since + delay + grace))
  end
end

for at = 2, #ARGV, 2 do
  local member, delay = ARGV[at], ARGV[at + 1]
  local ends = string.match(redis.call("GET", claim .. member) or "", "^%d+ (%d+)")
  redis.call("HSET", delays, member, delay)
  if not redis.call("ZSCORE", schedule, member) then
    redis.call("ZADD", schedule, text(now), member)
    redis.call("HINCRBY", counts, string.match(member, "^[^:]*"), 1)
  elseif ends then -- who loads it heeds the new delay, and sees by this that it was scheduled meanwhile
    redis.call("ZADD", schedule, "LT", text(ends - 1), member)
  else
    redis.call("ZADD", schedule, "LT", text(now + delay), member)
  end
  shorten(member, delay)
end
return 1
