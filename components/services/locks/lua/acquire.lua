-- Take a lock that is free, or say how long there is nothing to look at. Repeated, it is taken once.
-- KEYS[1] lock   STRING token of the holder
-- KEYS[2] state  HASH figures, and who holds it by a token of their own; absent where there is nothing to tell
-- KEYS[3] queue  ZSET waiter by the microsecond of its arrival
-- KEYS[4] beats  ZSET waiter by the microsecond until which it counts as alive
-- KEYS[5] held   ZSET lock by the millisecond its time ends; and below zero the fences: of "\255" .. lock that of its
--                last holder, until it is released, and of "" the latest of all
-- ARGV[1] token
-- ARGV[2] asker: names this acquisition, also as a waiter; the token itself, unless the caller chose that
-- ARGV[3] milliseconds to hold it; 0 for ever
-- ARGV[4] microseconds that a waiter counts as alive; 0 if the caller does not wait
-- ARGV[5] 1 if nobody may pass the queue
-- ARGV[6] microseconds that the caller has waited
-- Returns the fence and the milliseconds left (-1 for ever); or 0, and the milliseconds in which nothing changes
--         without a wake-up (-1 for ever)
local lock, state, queue, beats, held = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local token, asker, ttl, life = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local is_fair, waited = ARGV[5] == "1", tonumber(ARGV[6])
local DAY, HOUR, FORGOTTEN = 86400000, 3600000, 5000 -- milliseconds

local time = redis.call("TIME")
local now = time[1] * 1000000 + time[2]
local function text(number) return string.format("%.0f", number) end

local is_known = redis.call("EXISTS", queue, state) > 0
for _, dead in ipairs(is_known and redis.call("ZRANGEBYSCORE", beats, "-inf", text(now)) or {}) do
  for _, zset in ipairs({ queue, beats }) do redis.call("ZREM", zset, dead) end
end
local head = is_known and is_fair and redis.call("ZRANGE", queue, 0, 0)[1] or asker
local is_new = head == asker and (ttl == 0 and redis.call("SET", lock, token, "NX")
  or ttl > 0 and redis.call("SET", lock, token, "NX", "PX", ttl))
if not is_new then
  local holder = redis.call("GET", lock)
  if holder == token and (asker == token or redis.call("HGET", state, "by") == asker) then
    return { -(redis.call("ZSCORE", held, "\255" .. lock) or -now), redis.call("PTTL", lock) }
  end
  if life > 0 then
    local tail = redis.call("ZRANGE", queue, -1, -1, "WITHSCORES")[2] or 0
    redis.call("ZADD", queue, "NX", text(math.max(tail + 1, now)), asker)
    redis.call("ZADD", beats, text(now + life), asker)
    for _, zset in ipairs({ queue, beats }) do redis.call("PEXPIRE", zset, math.ceil(life / 1000) + FORGOTTEN) end
  end
  if holder then return { 0, redis.call("PTTL", lock) } end
  local dies_at = redis.call("ZSCORE", beats, head)
  if not dies_at then redis.call("ZREM", queue, head) end -- Redis has evicted its heartbeats
  return { 0, math.ceil(((dies_at or now) - now) / 1000) }
end

local lost, last = unpack(redis.call("ZMSCORE", held, "\255" .. lock, "")) -- lost: not released by who held it last
local fence = math.max(now, 1 - (last or 0))
local ends_at = ttl == 0 and "inf" or text(now / 1000 + ttl)
redis.call("ZADD", held, ends_at, lock, text(-fence), "\255" .. lock, text(-fence), "")
local stays = redis.call("PTTL", held)
if ttl == 0 then
  redis.call("PERSIST", held)
elseif stays < ttl + DAY and (stays >= 0 or redis.call("ZRANGE", held, -1, -1, "WITHSCORES")[2] ~= "inf") then
  redis.call("PEXPIRE", held, ttl + DAY + HOUR)
end
if fence % 64 == 0 then
  for _, old in ipairs(redis.call("ZRANGEBYSCORE", held, 0, text(now / 1000 - DAY), "LIMIT", 0, 100)) do
    redis.call("ZREM", held, old, "\255" .. old)
  end
end

if is_known or lost or waited > 0 or asker ~= token then
  for _, zset in ipairs({ queue, beats }) do redis.call("ZREM", zset, asker) end
  local counted = redis.call("HEXISTS", state, "acquired")
  if counted == 1 or lost or waited > 0 then -- the first to be counted is the holder before
    redis.call("HINCRBY", state, "acquired", 2 - counted)
    redis.call("HSET", state, "fence", text(fence))
  end
  if lost then redis.call("HINCRBY", state, "expired", 1) end
  if waited > 0 then
    redis.call("HINCRBY", state, "waits", 1)
    redis.call("HINCRBY", state, "waited", waited)
    redis.call("HSET", state, "longest", math.max(redis.call("HGET", state, "longest") or 0, waited))
  end
  if asker ~= token then redis.call("HSET", state, "by", asker) else redis.call("HDEL", state, "by") end
  redis.call("PEXPIRE", state, ttl + DAY)
  if ttl == 0 and asker ~= token then redis.call("PERSIST", state) end
end
return { fence, ttl == 0 and -1 or ttl }
