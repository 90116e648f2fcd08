-- Make periodic tasks known: the first tick of one never seen before is the next after now. Tells the last ticks.
-- Repeated, it answers the same, but for the time.
-- KEYS[1] periodic  ZSET tick name by the microsecond of the last tick
-- ARGV[1] how long a name is kept that nobody declares, microseconds after its last tick
-- ARGV[2..] per task: its tick name; and a limit, microseconds, or 0: a last tick later than that was taken by a
--           clock that had jumped ahead, and becomes now
-- Returns now, and per name its last tick or when it became known, in microseconds
local periodic, kept = KEYS[1], ARGV[1]
local MOST = 1000 -- names that are forgotten in one call

local time = redis.call("TIME")
local now_us = time[1] * 1000000 + time[2]
local now = string.format("%.0f", now_us)

local answer, declared = { now }, {}
redis.call("ZREM", periodic, "") -- needs no memory: a full server lets the next writes pass after it
for at = 2, #ARGV, 2 do
  local name, limit = ARGV[at], tonumber(ARGV[at + 1])
  redis.call("ZADD", periodic, "NX", now, name)
  if limit > 0 and tonumber(redis.call("ZSCORE", periodic, name)) > limit then
    redis.call("ZADD", periodic, now, name)
  end
  answer[#answer + 1] = redis.call("ZSCORE", periodic, name)
  declared[name] = true
end
local before = string.format("%.0f", now_us - kept)
for _, name in ipairs(redis.call("ZRANGEBYSCORE", periodic, "-inf", before, "LIMIT", 0, MOST)) do
  if not declared[name] then redis.call("ZREM", periodic, name) end
end
return answer
