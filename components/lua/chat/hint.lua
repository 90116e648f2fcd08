-- Note in an inbox that its owner may be in a chat. Before he is in it, so that no chat is without its hint.
-- KEYS[1] hints  ZSET chat id by the millisecond of the hint
-- ARGV[1] chat id
-- Returns 1
local hints = KEYS[1]
local id = ARGV[1]

local time = redis.call("TIME")
redis.call("ZADD", hints, "GT", time[1] * 1000 + math.floor(time[2] / 1000), id)
return 1
