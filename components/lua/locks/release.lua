-- Release a lock that the caller holds, and wake who waits first. Repeated, it says so again.
-- KEYS[1] lock      STRING token of the holder
-- KEYS[2] state     HASH fence and figures
-- KEYS[3] queue     ZSET waiter by arrival
-- KEYS[4] beats     ZSET waiter by the microsecond until which it counts as alive
-- KEYS[5] held      ZSET lock by the millisecond its time ends
-- KEYS[6] released  STRING, prefix to the token: why it was released
-- KEYS[7] wake      LIST, prefix to the token of a waiter
-- ARGV[1] token
-- ARGV[2] "released"; "forced" if another than the holder does it; "left" if a waiter gives up
-- Returns 1 if it was held by this token, or this token was released before for the same reason
local lock, state, queue, beats, held = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local released, wake = KEYS[6], KEYS[7]
local token, reason = ARGV[1], ARGV[2]
local REPEATED, WOKEN = 30000, 2000 -- milliseconds: how late a release may be sent again, how long a wake-up counts

local is_mine = redis.call("GET", lock) == token
if is_mine then
  redis.call("DEL", lock)
  redis.call("ZREM", held, lock)
  redis.call("SET", released .. token, reason, "PX", REPEATED)
  if reason == "forced" then redis.call("HINCRBY", state, "forced", 1) end
end
if reason == "left" then
  redis.call("ZREM", queue, token)
  redis.call("ZREM", beats, token)
  redis.call("DEL", wake .. token)
end

if redis.call("EXISTS", queue) == 1 and redis.call("EXISTS", lock) == 0 then
  local time = redis.call("TIME")
  local now = string.format("%.0f", time[1] * 1000000 + time[2])
  for _, id in ipairs(redis.call("ZRANGEBYSCORE", beats, "-inf", now)) do redis.call("ZREM", queue, id) end
  redis.call("ZREMRANGEBYSCORE", beats, "-inf", now)
  local head = redis.call("ZRANGE", queue, 0, 0)[1]
  if head and redis.call("LLEN", wake .. head) == 0 then
    redis.call("RPUSH", wake .. head, "1")
    redis.call("PEXPIRE", wake .. head, WOKEN)
  end
end
return (is_mine or redis.call("GET", released .. token) == reason) and 1 or 0
