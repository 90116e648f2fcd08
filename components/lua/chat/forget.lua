-- Take hints out of an inbox whose chats have denied them, unless they are young: then somebody may be joining.
-- KEYS[1] hints  ZSET chat id by the millisecond of the hint
-- KEYS[2] past   ZSET chat id by the millisecond at which this was noted
-- ARGV[1] milliseconds that a hint is young
-- ARGV[2..] chat ids
-- Returns how many hints are gone
local hints, past = KEYS[1], KEYS[2]
local young = ARGV[1]

local time, gone = redis.call("TIME"), 0
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for each = 2, #ARGV do
  local hinted_at = redis.call("ZSCORE", hints, ARGV[each])
  redis.call("ZADD", past, "NX", now, ARGV[each])
  if not hinted_at or hinted_at + young <= now then
    redis.call("ZREM", hints, ARGV[each])
    gone = gone + 1
  end
end
return gone
