-- Note in an inbox that its owner may be in a chat. Before he is in it, so that no chat is without its hint.
-- KEYS[1] hints  ZSET chat id by the millisecond of the hint, which differs each time
-- ARGV[1] chat id
-- Returns 1
local hints = KEYS[1]
local id = ARGV[1]

local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call("ZADD", hints, math.max(now, (redis.call("ZSCORE", hints, id) or 0) + 1), id)
return 1
