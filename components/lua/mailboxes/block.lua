-- Refuse the mail of a sender from now on. Idempotent by nature.
-- KEYS[1] blocked  HASH sender whose mail is refused -> the millisecond since when
-- ARGV[1] sender
-- Returns 1
local blocked = KEYS[1]
local sender = ARGV[1]

local time = redis.call("TIME")
redis.call("HSETNX", blocked, sender, string.format("%.0f", time[1] * 1000 + math.floor(time[2] / 1000)))
return 1
