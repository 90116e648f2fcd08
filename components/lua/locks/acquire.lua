-- Take a lock that is free, or say how long there is nothing to look at. Repeated, it is taken once.
-- KEYS[1] lock   STRING token of the holder
-- KEYS[2] state  HASH fence and figures
-- KEYS[3] queue  ZSET waiter by the microsecond of its arrival
-- KEYS[4] beats  ZSET waiter by the microsecond until which it counts as alive
-- KEYS[5] held   ZSET lock by the millisecond its time ends
-- ARGV[1] token, which also names the waiter
-- ARGV[2] milliseconds to hold it; 0 for ever
-- ARGV[3] microseconds that a waiter counts as alive; 0 if the caller does not wait
-- ARGV[4] 1 if nobody may pass the queue
-- Returns the fence and the milliseconds left (-1 for ever); or 0, and the milliseconds in which nothing changes
--         without a wake-up (-1 for ever)
local lock, state, queue, beats, held = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local token, ttl, life, is_fair = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4] == "1"
local DAY, FORGOTTEN = 86400000, 60000 -- milliseconds

local time = redis.call("TIME")
local now = time[1] * 1000000 + time[2]
local function text(number) return string.format("%.0f", number) end

local holder, last = redis.call("GET", lock), redis.call("HMGET", state, "fence", "longest")
if holder == token and last[1] then return { tonumber(last[1]), redis.call("PTTL", lock) } end

local is_queued, other_dies_at = (is_fair or life > 0) and redis.call("EXISTS", queue) == 1, nil
if is_queued and is_fair then
  for _, id in ipairs(redis.call("ZRANGEBYSCORE", beats, "-inf", text(now))) do redis.call("ZREM", queue, id) end
  redis.call("ZREMRANGEBYSCORE", beats, "-inf", text(now))
  local head = redis.call("ZRANGE", queue, 0, 0)[1]
  other_dies_at = head and head ~= token and tonumber(redis.call("ZSCORE", beats, head) or now)
end
if holder and holder ~= token or other_dies_at then
  if life > 0 then
    local tail = redis.call("ZRANGE", queue, -1, -1, "WITHSCORES")[2] or 0
    redis.call("ZADD", queue, "NX", text(math.max(tail + 1, now)), token)
    redis.call("ZADD", beats, text(now + life), token)
    for _, key in ipairs({ queue, beats }) do redis.call("PEXPIRE", key, FORGOTTEN) end
  end
  return { 0, holder and redis.call("PTTL", lock) or math.ceil((other_dies_at - now) / 1000) }
end

local fence, arrived_at = math.max((last[1] or 0) + 1, now), is_queued and redis.call("ZSCORE", queue, token)
if arrived_at then
  for _, key in ipairs({ queue, beats }) do redis.call("ZREM", key, token) end
  redis.call("HINCRBY", state, "waits", 1)
  redis.call("HINCRBY", state, "waited", text(now - arrived_at))
  redis.call("HSET", state, "longest", text(math.max(last[2] or 0, now - arrived_at)))
end
redis.call("SET", lock, token, unpack(ttl > 0 and { "PX", ttl } or {}))
redis.call("HSET", state, "fence", text(fence), "since", text(now))
redis.call("HINCRBY", state, "acquired", 1)
if redis.call("ZADD", held, ttl > 0 and text(now / 1000 + ttl) or "inf", lock) == 0 then
  redis.call("HINCRBY", state, "expired", 1) -- the holder before has not released it
end
redis.call("PEXPIRE", state, ttl + DAY)
if fence % 64 == 0 then redis.call("ZREMRANGEBYSCORE", held, "-inf", text(now / 1000 - DAY)) end
return { fence, ttl > 0 and ttl or -1 }
