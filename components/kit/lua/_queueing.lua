-- USES    waiters
-- Give a waiter a place at the end of the queue, unless it has one, and let it count as alive for some microseconds.
local function line_up(waiter, life)
  local last = redis.call("ZRANGE", queue, -1, -1, "WITHSCORES")[2] or 0
  redis.call("ZADD", queue, "NX", text(math.max(last + 1, MICROSECONDS)), waiter)
  redis.call("ZADD", beats, text(MICROSECONDS + life), waiter)
  local forgotten = math.ceil(life / 1000) + 5000 -- milliseconds
  redis.call("PEXPIRE", queue, forgotten)
  redis.call("PEXPIRE", beats, forgotten)
end
