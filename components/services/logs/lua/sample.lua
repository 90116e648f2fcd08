-- Keep lines that an aggregation has rejected, to be shown; the newest only. Repeated, it keeps each once.
-- KEYS[1] samples  ZSET JSON of a line by the millisecond it was rejected
-- ARGV[1] how many are kept
-- ARGV[2..] lines
-- Returns how many there are
local samples = KEYS[1]
local most = tonumber(ARGV[1])

local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call("ZREMRANGEBYRANK", samples, 0, -1 - most) -- first: it is allowed where memory is full
for at = 2, #ARGV do redis.call("ZADD", samples, "NX", now, ARGV[at]) end
redis.call("ZREMRANGEBYRANK", samples, 0, -1 - most)
return redis.call("ZCARD", samples)
