-- Take a permit; if there is none, take a place in the queue. Repeated, one of either is taken.
-- KEYS[1] holders  ZSET permit by the microsecond its lease ends
-- KEYS[2] heavy    ZSET permit by its weight, if that is above 1
-- KEYS[3] since    ZSET permit by the microsecond it was granted
-- KEYS[4] queue    ZSET waiter by the microsecond of its arrival
-- KEYS[5] beats    ZSET waiter by the microsecond until which it counts as alive
-- KEYS[6] stats    HASH declared limit and figures
-- KEYS[7] limits   HASH name -> limit that was set by hand
-- KEYS[8] names    ZSET name by the day of its last use
-- KEYS[9] ended    STRING, prefix to a permit: the call that ended it
-- KEYS[10] wake    LIST, prefix to a waiter
-- ARGV[1] name of the semaphore
-- ARGV[2] permit, which also names the waiter
-- ARGV[3] its weight
-- ARGV[4] limit, as declared by the caller
-- ARGV[5] lease, microseconds
-- ARGV[6] microseconds that a waiter counts as alive; 0 if the caller does not wait
-- Returns "granted" and the microseconds left; "wait" and the milliseconds in which nothing changes without a
--         wake-up; "full" and 0; "heavy" and the limit, if the weight is above it; "ended" and the call that did it
local holders, heavy, since, queue, beats = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local stats, limits, names, ended, wake = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local name, permit, weight, declared = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local lease, life = tonumber(ARGV[5]), tonumber(ARGV[6])
local KEPT, FORGOTTEN, WOKEN = 30 * 86400000, 5000, 2000 -- milliseconds
local KEPT_DAYS, DAY = 30, 86400000000 -- DAY: microseconds

local time = redis.call("TIME")
local now = time[1] * 1000000 + time[2]
local function text(number) return string.format("%.0f", number) end
local function score(zset, from, to) return tonumber(redis.call("ZRANGE", zset, from, to, "WITHSCORES")[2]) end

-- A full server refuses a script whose first write needs memory. This one changes nothing and needs none, so that
-- tasks under a limit are claimed, and queues drained, however full the server is. There are few permits.
redis.call("ZREM", holders, "")

-- What has expired is free again, and who has died waits no more.
local over = redis.call("ZRANGEBYSCORE", holders, "-inf", text(now))
for _, each in ipairs(over) do
  for _, zset in ipairs({ holders, heavy, since }) do redis.call("ZREM", zset, each) end
end
if #over > 0 then redis.call("HINCRBY", stats, "expired", #over) end
local dead = redis.call("ZRANGEBYSCORE", beats, "-inf", text(now))
for _, each in ipairs(dead) do
  for _, zset in ipairs({ queue, beats }) do redis.call("ZREM", zset, each) end
end

redis.call("HSET", stats, "declared", declared)
redis.call("PEXPIRE", stats, KEPT)
if redis.call("ZADD", names, "GT", "CH", math.floor(now / DAY), name) == 1 then
  redis.call("ZREMRANGEBYSCORE", names, "-inf", math.floor(now / DAY) - KEPT_DAYS - 1)
  if redis.call("HLEN", limits) == 0 then redis.call("PEXPIRE", names, KEPT + 2 * DAY / 1000) end
end

-- Only the head of the queue is woken, since only the head may go next.
local function wake_head()
  local head = redis.call("ZRANGE", queue, 0, 0)[1]
  if head and head ~= permit and redis.call("LLEN", wake .. head) == 0 then
    redis.call("RPUSH", wake .. head, "1")
    redis.call("PEXPIRE", wake .. head, WOKEN)
  end
end
if #over + #dead > 0 then wake_head() end

local ends_at, ended_by = redis.call("ZSCORE", holders, permit), redis.call("GET", ended .. permit)
if ends_at then return { "granted", ends_at - now } end
if ended_by then return { "ended", ended_by } end

local limit = tonumber(redis.call("HGET", limits, name) or declared)
if weight > limit then return { "heavy", limit } end
local free = limit - redis.call("ZCARD", holders)
local weights = redis.call("ZRANGE", heavy, 0, -1, "WITHSCORES")
for at = 2, #weights, 2 do free = free - (weights[at] - 1) end
local head = redis.call("ZRANGE", queue, 0, 0)[1] or permit
if head ~= permit or weight > free then
  if life == 0 then return { "full", 0 } end
  redis.call("ZADD", queue, "NX", text(math.max(now, 1 + (score(queue, -1, -1) or 0))), permit)
  redis.call("ZADD", beats, text(now + life), permit)
  for _, zset in ipairs({ queue, beats }) do redis.call("PEXPIRE", zset, math.ceil(life / 1000) + FORGOTTEN) end
  return { "wait", math.ceil((math.min(score(holders, 0, 0) or math.huge, score(beats, 0, 0)) - now) / 1000) }
end

redis.call("ZADD", holders, text(now + lease), permit)
redis.call("ZADD", since, text(now), permit)
if weight > 1 then redis.call("ZADD", heavy, weight, permit) end
for _, zset in ipairs({ holders, since, heavy }) do redis.call("PEXPIRE", zset, KEPT) end
redis.call("HINCRBY", stats, "granted", 1)
local arrived_at = redis.call("ZSCORE", queue, permit)
if arrived_at then
  local waited, longest = now - arrived_at, tonumber(redis.call("HGET", stats, "longest") or 0)
  for _, zset in ipairs({ queue, beats }) do redis.call("ZREM", zset, permit) end
  redis.call("DEL", wake .. permit)
  redis.call("HINCRBY", stats, "waits", 1)
  redis.call("HINCRBY", stats, "waited", text(waited))
  redis.call("HSET", stats, "longest", text(math.max(longest, waited)))
end
if free > weight then wake_head() end
return { "granted", lease }
