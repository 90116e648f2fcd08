-- Take a lock that is free, or say how long there is nothing to look at. Repeated, it is taken once.
-- KEYS[1] lock   STRING token of the holder
-- KEYS[2] state  HASH of fences: fence (the latest), released, evicted, lost (the latest), born; and figures
-- KEYS[3] queue  ZSET waiter by the microsecond of its arrival
-- KEYS[4] beats  ZSET waiter by the microsecond until which it counts as alive
-- KEYS[5] held   ZSET lock by the millisecond its time ends
-- ARGV[1] token, which also names the waiter
-- ARGV[2] milliseconds to hold it; 0 for ever
-- ARGV[3] microseconds that a waiter counts as alive; 0 if the caller does not wait
-- ARGV[4] 1 if nobody may pass the queue
-- ARGV[5] microseconds that the caller has waited
-- Returns the fence and the milliseconds left (-1 for ever); or 0, and the milliseconds in which nothing changes
--         without a wake-up (-1 for ever)
local lock, state, queue, beats, held = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local token, ttl, life, is_fair, waited = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4] == "1", ARGV[5]
local EXACT, DAY, HOUR, FORGOTTEN, LOST = "%.0f", 86400000, 3600000, 60000, 340 -- ms; characters of twenty fences

local time = redis.call("TIME")
local now = time[1] * 1000000 + time[2]

local head, dies_at = is_fair and redis.call("ZRANGE", queue, 0, 0)[1], 0
while head and head ~= token and dies_at <= now do
  dies_at = tonumber(redis.call("ZSCORE", beats, head) or 0)
  if dies_at <= now then head = redis.call("ZREM", queue, head) and redis.call("ZRANGE", queue, 0, 0)[1] end
end
local is_behind = head and head ~= token
local is_new = not is_behind and (ttl == "0" and redis.call("SET", lock, token, "NX")
  or ttl ~= "0" and redis.call("SET", lock, token, "NX", "PX", ttl))
local last, acquired, released = unpack(redis.call("HMGET", state, "fence", "acquired", "released"))
if not is_new then
  local holder = redis.call("GET", lock)
  if holder == token then return { tonumber(last or now), redis.call("PTTL", lock) } end
  if life > 0 then
    local tail = redis.call("ZRANGE", queue, -1, -1, "WITHSCORES")[2] or 0
    redis.call("ZADD", queue, "NX", string.format(EXACT, math.max(tail + 1, now)), token)
    redis.call("ZADD", beats, string.format(EXACT, now + life), token)
    for _, key in ipairs({ queue, beats }) do redis.call("PEXPIRE", key, FORGOTTEN) end
  end
  return { 0, holder and redis.call("PTTL", lock) or math.ceil((dies_at - now) / 1000) }
end

local fence = math.max((last or 0) + 1, now)
local fence_text = string.format(EXACT, fence)
redis.call("HSET", state, "fence", fence_text, "acquired", (acquired or 0) + 1)
if not last then redis.call("HSET", state, "born", fence_text) end
if last and released ~= last then -- the holder before has not released it
  local lost = string.sub(last .. " " .. (redis.call("HGET", state, "lost") or ""), 1, LOST)
  redis.call("HSET", state, "lost", lost)
  if #lost == LOST then redis.call("HSET", state, "born", string.match(lost, "(%d+) $")) end -- before it all is dark
  if redis.call("HGET", state, "evicted") ~= last then redis.call("HINCRBY", state, "expired", 1) end
end
if life > 0 and redis.call("EXISTS", queue) == 1 then
  for _, key in ipairs({ queue, beats }) do redis.call("ZREM", key, token) end
end
if waited ~= "0" then
  redis.call("HINCRBY", state, "waits", 1)
  redis.call("HINCRBY", state, "waited", waited)
  local longest = redis.call("HGET", state, "longest") or 0
  redis.call("HSET", state, "longest", string.format(EXACT, math.max(longest, waited)))
end
if not last or ttl + 0 > HOUR or now - last > HOUR * 1000 then redis.call("PEXPIRE", state, ttl + DAY) end
if ttl == "0" then redis.call("PERSIST", state) end
redis.call("ZADD", held, ttl == "0" and "inf" or string.format(EXACT, now / 1000 + ttl), lock)
if fence % 64 == 0 then redis.call("ZREMRANGEBYSCORE", held, "-inf", string.format(EXACT, now / 1000 - DAY)) end
return { fence, ttl == "0" and -1 or tonumber(ttl) }
