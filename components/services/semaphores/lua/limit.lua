-- Set a limit by hand, or leave it to what the code declares; wake who may go now. Idempotent by nature.
-- KEYS[1] limits  HASH name -> limit that was set by hand
-- KEYS[2] names   ZSET name by the day of its last use; with a limit of its own, for ever
-- KEYS[3] queue   ZSET waiter by the microsecond of its arrival
-- KEYS[4] beats   ZSET waiter by the microsecond until which it counts as alive
-- KEYS[5] wake    LIST, prefix to a waiter
-- ARGV[1] name of the semaphore
-- ARGV[2] limit; "" is that of the code
-- Returns 1
local limits, names, queue, beats, wake = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local name, limit = ARGV[1], ARGV[2]
local DAY, WOKEN = 86400, 2000 -- seconds; milliseconds

local time = redis.call("TIME")
local now = time[1] * 1000000 + time[2]

redis.call("HDEL", limits, name) -- first: a full server lets a script begin with what frees memory, and do the rest
if limit ~= "" then
  redis.call("HSET", limits, name, limit)
  redis.call("ZADD", names, "inf", name)
  redis.call("PERSIST", names)
else
  redis.call("ZADD", names, "XX", math.floor(time[1] / DAY), name)
end

for _, dead in ipairs(redis.call("ZRANGEBYSCORE", beats, "-inf", string.format("%.0f", now))) do
  for _, zset in ipairs({ queue, beats }) do redis.call("ZREM", zset, dead) end
end
local head = redis.call("ZRANGE", queue, 0, 0)[1]
if head and redis.call("LLEN", wake .. head) == 0 then
  redis.call("RPUSH", wake .. head, "1")
  redis.call("PEXPIRE", wake .. head, WOKEN)
end
return 1
