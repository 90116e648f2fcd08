-- Refuse the mail of a sender from now on. Idempotent by nature.
-- KEYS[1] blocked  HASH sender whose mail is refused -> the millisecond since when
-- ARGV[1] sender
-- ARGV[2] so many at most
-- Returns 1; 0 if so many are blocked already, and this one is not
local blocked = KEYS[1]
local sender, most = ARGV[1], tonumber(ARGV[2])

local time = redis.call("TIME")
if redis.call("HEXISTS", blocked, sender) == 1 then return 1 end
if redis.call("HLEN", blocked) >= most then return 0 end
redis.call("HSET", blocked, sender, string.format("%.0f", time[1] * 1000 + math.floor(time[2] / 1000)))
return 1
