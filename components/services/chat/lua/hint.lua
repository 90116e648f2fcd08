-- Note in an inbox that its owner may be in a chat. Before they are in it, so that no chat is without its hint.
-- KEYS[1] hints  ZSET chat id by the millisecond of the hint, which differs each time
-- ARGV[1] chat id
-- ARGV[2] so many chats may there be; 0 for any number
-- ARGV[3] 1 to do it, 0 to see whether it may be done
-- Returns 1; 0 if there are so many already, and this is none of them
local hints = KEYS[1]
local id, most, is_done = ARGV[1], tonumber(ARGV[2]), ARGV[3] == "1"

local score = redis.call("ZSCORE", hints, id)
if not score and most > 0 and redis.call("ZCARD", hints) >= most then return 0 end
if is_done then
  local time = redis.call("TIME")
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  redis.call("ZADD", hints, math.max(now, (score or 0) + 1), id)
end
return 1
