-- Take hints out of an inbox whose chats have denied them, unless they are young: then somebody may be joining.
-- KEYS[1] hints  ZSET chat id by the millisecond of the hint
-- KEYS[2] past   ZSET chat id by the millisecond at which this was noted last, which differs each time
-- ARGV[1] milliseconds that a hint is young
-- ARGV[2..] chat ids
-- Returns how many chats are in the past
local hints, past = KEYS[1], KEYS[2]
local young = ARGV[1]

local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- A script that begins with what needs no memory is taken by a server that is full; this changes nothing.
redis.call("PERSIST", hints)
for each = 2, #ARGV do
  local hinted_at = redis.call("ZSCORE", hints, ARGV[each])
  if hinted_at and hinted_at + young <= now then redis.call("ZREM", hints, ARGV[each]) end
  redis.call("ZADD", past, math.max(now, (redis.call("ZSCORE", past, ARGV[each]) or 0) + 1), ARGV[each])
end
return redis.call("ZCARD", past)
