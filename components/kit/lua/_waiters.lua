-- USES    time ahead
-- Waiters: in `queue` by the microsecond of their arrival, in `beats` by the one until which they count as alive.

local function first_waiter() return redis.call("ZRANGE", queue, 0, 0)[1] end

local function remove_waiter(waiter)
  redis.call("ZREM", beats, waiter)
  return redis.call("ZREM", queue, waiter)
end

-- Remove the waiters that have missed their heartbeats by the microsecond *now*, and return how many there were. With
-- *life*, which a heartbeat lasts, no waiter counts as alive for longer than that.
local function remove_dead_waiters(now, life)
  if life then bring_back(beats, now + life) end
  local dead = redis.call("ZRANGEBYSCORE", beats, "-inf", text(now))
  for _, waiter in ipairs(dead) do remove_waiter(waiter) end
  return #dead
end
