-- Tell the last ticks of periodic tasks. Reads only.
-- KEYS[1] periodic  ZSET tick name by the microsecond of the last tick
-- ARGV[1..] the tick names
-- Returns now, and per name its last tick or when it became known, in microseconds; false for what is not known
local periodic = KEYS[1]

local time = redis.call("TIME")
local answer = { string.format("%.0f", time[1] * 1000000 + time[2]) }
for number, name in ipairs(ARGV) do answer[number + 1] = redis.call("ZSCORE", periodic, name) end
return answer
