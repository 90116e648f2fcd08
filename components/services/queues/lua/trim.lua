-- Let go of what queues kept long enough: dead tasks by age and number, the list of successful ones by age.
-- Leases that only a clock that had jumped ahead can have given end as if they were given now. Queues that hold no
-- task any more are forgotten. Idempotent by nature.
-- KEYS[1] tasks     HASH id -> record
-- KEYS[2] runs      HASH id -> run record
-- KEYS[3] errors    HASH id -> JSON
-- KEYS[4] progress  HASH id -> JSON
-- KEYS[5] names     SET of queues that are listed
-- KEYS[6] active    SET of queues that workers of all queues ask
-- KEYS[7] paused    SET of queues
-- KEYS[8..] per queue: ready, delayed, running, dead, successful ZSETs, wake LIST
-- ARGV[1] how long dead tasks are kept, milliseconds
-- ARGV[2] how many of them are kept
-- ARGV[3] how long successful tasks are listed, milliseconds
-- ARGV[4] how many tasks may go in this call
-- ARGV[5] lease of tasks that have none of their own, milliseconds
-- ARGV[6..] the queues
-- Returns how many dead tasks went
local tasks, runs, errors, progress, names, active = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local paused, dead_ttl, dead_limit, listed_ttl, most = KEYS[7], ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local lease = tonumber(ARGV[5])
local HOUR, LOOKED_AT = 3600000, 100 -- milliseconds: other workers may give longer leases; leases in this call

local time = redis.call("TIME")
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)

local function let_go(dead, left)
  local too_old = redis.call("ZCOUNT", dead, "-inf", now_ms - dead_ttl)
  local too_many = redis.call("ZCARD", dead) - dead_limit
  local go = math.min(math.max(too_old, too_many), left)
  if go < 1 then return 0 end
  local ids = redis.call("ZRANGE", dead, 0, go - 1)
  redis.call("ZREM", dead, unpack(ids))
  for _, hash in ipairs({ tasks, runs, errors, progress }) do redis.call("HDEL", hash, unpack(ids)) end
  return go
end

local function shorten_leases(running)
  local too_late = "(" .. now_ms + lease + HOUR
  for _, id in ipairs(redis.call("ZREVRANGEBYSCORE", running, "+inf", too_late, "LIMIT", 0, LOOKED_AT)) do
    local own = tonumber(string.match(redis.call("HGET", tasks, id) or "", "^1 %S+ %S+ %S+ %S+ (%d+) ") or 0)
    local ends = now_ms + (own > 0 and own or lease)
    if tonumber(redis.call("ZSCORE", running, id)) > ends + HOUR then redis.call("ZADD", running, ends, id) end
  end
end

local gone = 0
for number = 1, #ARGV - 5 do
  local queue, base = ARGV[5 + number], 8 + 6 * (number - 1)
  local ready, delayed, running, dead, successful, wake = unpack(KEYS, base, base + 5)
  redis.call("ZREMRANGEBYSCORE", successful, "-inf", now_ms - listed_ttl)
  gone = gone + let_go(dead, most - gone)
  shorten_leases(running)
  local held = redis.call("EXISTS", ready, delayed, running, dead, successful)
  if held == 0 and redis.call("SISMEMBER", paused, queue) == 0 then
    redis.call("SREM", names, queue)
    redis.call("SREM", active, queue)
    redis.call("DEL", wake)
  end
end
return gone
