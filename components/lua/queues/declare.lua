-- Make periodic tasks known: the first tick of one never seen before is the next after now. Tells the last ticks.
-- KEYS[1] periodic  ZSET tick name by the microsecond of the last tick
-- ARGV[1..] the tick names
-- Returns now, and per name its last tick or when it became known, in microseconds
local periodic = KEYS[1]

local time = redis.call("TIME")
local now = string.format("%.0f", time[1] * 1000000 + time[2])

local answer = { now }
redis.call("ZREM", periodic, "") -- needs no memory: a full server lets the next writes pass after it
for number, name in ipairs(ARGV) do
  redis.call("ZADD", periodic, "NX", now, name)
  answer[number + 1] = redis.call("ZSCORE", periodic, name)
end
return answer
