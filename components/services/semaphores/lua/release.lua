-- Give a permit or a place in the queue back, and wake who is next. Repeated, it says the same again.
-- KEYS[1] holders  ZSET permit by the microsecond its lease ends
-- KEYS[2] heavy    ZSET permit by its weight, if that is above 1
-- KEYS[3] since    ZSET permit by the microsecond it was granted
-- KEYS[4] queue    ZSET waiter by the microsecond of its arrival
-- KEYS[5] beats    ZSET waiter by the microsecond until which it counts as alive
-- KEYS[6] stats    HASH figures
-- KEYS[7] ended    STRING, prefix to a permit: the call that ended it
-- KEYS[8] wake     LIST, prefix to a waiter
-- ARGV[1] permit
-- ARGV[2] name of this call: release, evict or leave, and what makes it unlike others
-- Returns the name of the call that ended the permit, this one or one before; "" if its lease ran out
local holders, heavy, since, queue = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local beats, stats, ended, wake = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local permit, call = ARGV[1], ARGV[2]
local REPEATED, WOKEN = 30000, 2000 -- milliseconds: how late a call may be sent again, how long a wake-up counts

local time = redis.call("TIME")
local now = time[1] * 1000000 + time[2]

local is_leaving = string.sub(call, 1, 5) == "leave"
local ends_at = tonumber(redis.call("ZSCORE", holders, permit) or 0)
if ends_at > now or is_leaving then
  for _, zset in ipairs({ holders, heavy, since }) do redis.call("ZREM", zset, permit) end
  redis.call("SET", ended .. permit, call, "NX", "PX", REPEATED)
end
if is_leaving then
  if redis.call("ZREM", queue, permit) == 1 then redis.call("HINCRBY", stats, "given_up", 1) end
  redis.call("ZREM", beats, permit)
end
redis.call("DEL", wake .. permit) -- a full server lets a script that has begun with this wake the next

for _, dead in ipairs(redis.call("ZRANGEBYSCORE", beats, "-inf", string.format("%.0f", now))) do
  for _, zset in ipairs({ queue, beats }) do redis.call("ZREM", zset, dead) end
end
local head = redis.call("ZRANGE", queue, 0, 0)[1]
if head and redis.call("LLEN", wake .. head) == 0 then
  redis.call("RPUSH", wake .. head, "1")
  redis.call("PEXPIRE", wake .. head, WOKEN)
end
return redis.call("GET", ended .. permit) or ""
