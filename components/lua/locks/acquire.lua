-- Take a lock that is free, or say how long there is nothing to look at. Repeated, it is taken once.
-- KEYS[1] lock   STRING token of the holder
-- KEYS[2] state  HASH of fences: fence (the latest), released, evicted, lost (the latest), born; since; figures
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
local token, ttl, life, is_fair, waited = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4] == "1", ARGV[5]
local DAY, HOUR, FORGOTTEN, LOST = 86400000, 3600000, 60000, 340 -- milliseconds; characters of twenty fences

local time = redis.call("TIME")
local now = time[1] * 1000000 + time[2]
local function text(number) return string.format("%.0f", number) end
local holder, old = redis.call("GET", lock), redis.call("HMGET", state,
  "fence", "since", "acquired", "released", "evicted", "lost", "longest")
local last = old[1]
if holder == token and last then return { tonumber(last), redis.call("PTTL", lock) } end

local head, dies_at = is_fair and redis.call("ZRANGE", queue, 0, 0)[1], 0
while head and head ~= token and dies_at <= now do
  dies_at = tonumber(redis.call("ZSCORE", beats, head) or 0)
  if dies_at <= now then head = redis.call("ZREM", queue, head) and redis.call("ZRANGE", queue, 0, 0)[1] end
end
local is_behind = head and head ~= token
if holder and holder ~= token or is_behind then
  if life > 0 then
    local tail = redis.call("ZRANGE", queue, -1, -1, "WITHSCORES")[2] or 0
    redis.call("ZADD", queue, "NX", text(math.max(tail + 1, now)), token)
    redis.call("ZADD", beats, text(now + life), token)
    for _, key in ipairs({ queue, beats }) do redis.call("PEXPIRE", key, FORGOTTEN) end
  end
  return { 0, holder and redis.call("PTTL", lock) or math.ceil((dies_at - now) / 1000) }
end

local fence = math.max((last or 0) + 1, now)
local changed = { "fence", text(fence), "since", text(now), "acquired", text((old[3] or 0) + 1) }
local function change(name, value) changed[#changed + 1], changed[#changed + 2] = name, value end
if not last then change("born", text(fence)) end
if last and old[4] ~= last then -- the holder before has not released it
  local lost = string.sub(last .. " " .. (old[6] or ""), 1, LOST)
  change("lost", lost)
  if #lost == LOST then change("born", string.match(lost, "(%d+) $")) end -- of what was before it knows no more
  if old[5] ~= last then redis.call("HINCRBY", state, "expired", 1) end
end
if life > 0 then
  for _, key in ipairs({ queue, beats }) do redis.call("ZREM", key, token) end
  if waited ~= "0" then
    redis.call("HINCRBY", state, "waits", 1)
    redis.call("HINCRBY", state, "waited", waited)
    change("longest", text(math.max(old[7] or 0, waited)))
  end
end
redis.call("SET", lock, token, unpack(ttl > 0 and { "PX", ttl } or {}))
redis.call("HSET", state, unpack(changed))
if not last or ttl > HOUR or now - old[2] > HOUR * 1000 then redis.call("PEXPIRE", state, ttl + DAY) end
if ttl == 0 then redis.call("PERSIST", state) end
redis.call("ZADD", held, ttl > 0 and text(now / 1000 + ttl) or "inf", lock)
if fence % 64 == 0 then redis.call("ZREMRANGEBYSCORE", held, "-inf", text(now / 1000 - DAY)) end
return { fence, ttl > 0 and ttl or -1 }
