-- Let rows of one bucket be loaded again and again, the new ones now. Idempotent by nature.
-- KEYS[1] schedule  ZSET member by the microsecond it is due
-- KEYS[2] delays    HASH member -> microseconds between two loads
-- KEYS[3] row       STRING, prefix to a member: JSON
-- KEYS[4] claim     STRING, prefix to a member: microseconds of the claim and of its end, token
-- KEYS[5] counts    HASH name -> how many are on the schedule
-- ARGV[1] microseconds that a row of the schedule is good beyond its delay
-- ARGV[2] 1 if only rows that are on the schedule are meant, else 0
-- ARGV[3..] member and microseconds, in turn
-- Returns of each member 1 if it was on the schedule, 0 if not
local schedule, delays, row, claim, counts = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local grace, only_these = tonumber(ARGV[1]), ARGV[2]

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

local function enter(member, delay)
  redis.call("HSET", delays, member, delay)
  redis.call("ZADD", schedule, text(now), member)
  redis.call("HINCRBY", counts, string.match(member, "^[^:]*"), 1)
  shorten(member, delay)
end

local function change(member, delay)
  local ends = string.match(redis.call("GET", claim .. member) or "", "^%d+ (%d+)")
  redis.call("HSET", delays, member, delay)
  -- Who loads it heeds the new delay, and sees by the microsecond less that it was scheduled meanwhile.
  redis.call("ZADD", schedule, "LT", text(ends and ends - 1 or now + delay), member)
  shorten(member, delay)
end

local answer = {}
for at = 3, #ARGV, 2 do
  local member, delay = ARGV[at], ARGV[at + 1]
  local was_there = redis.call("ZSCORE", schedule, member)
  if was_there then
    change(member, delay)
  elseif only_these == "0" then
    enter(member, delay)
  end
  answer[#answer + 1] = was_there and 1 or 0
end
return answer
