-- Take chats out of an inbox, unless they were noted anew since they were read. Idempotent by nature.
-- KEYS[1] hints  ZSET chat id by the millisecond of the hint
-- KEYS[2] past   ZSET chat id by the millisecond at which this was noted last
-- ARGV[1..] per chat: id; the score among the hints and the one in the past that were read, "" for none;
--           milliseconds that a hint is young: then somebody may be about to enter, and it stays
-- Returns 1
local hints, past = KEYS[1], KEYS[2]

local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function drop(key, id, read, before)
  local score = tonumber(redis.call("ZSCORE", key, id) or "")
  if score and score == tonumber(read) and score <= before then redis.call("ZREM", key, id) end
end
for each = 1, #ARGV, 4 do
  drop(hints, ARGV[each], ARGV[each + 1], now - ARGV[each + 3])
  drop(past, ARGV[each], ARGV[each + 2], math.huge)
end
return 1
