-- Take a permit or, if none is free, a place in the queue. A repeated call takes one of either.
-- KEYS    holders heavy since queue beats stats limits names ended wake
-- ARGV    name permit weight declared lease life
-- USES    time waiters queueing waking permits
-- RETURNS "granted" and the microseconds left; "wait" and the milliseconds in which nothing changes without a
--         wake-up; "full" and 0, if the caller does not wait, and *life* is 0; "heavy" and the limit, if the weight
--         is above it; "ended" and the call that ended the permit
weight, lease, life = tonumber(weight), tonumber(lease), tonumber(life)
local MONTH, TWO_DAYS = 30 * 86400000, 2 * 86400000 -- milliseconds

local function score_of_first(zset) return tonumber(redis.call("ZRANGE", zset, 0, 0, "WITHSCORES")[2]) end

local function end_leases()
  local over = redis.call("ZRANGEBYSCORE", holders, "-inf", text(MICROSECONDS))
  for _, each in ipairs(over) do remove_permit(each) end
  if #over > 0 then redis.call("HINCRBY", stats, "expired", #over) end
  return #over
end

local function list()
  redis.call("HSET", stats, "declared", declared)
  redis.call("PEXPIRE", stats, MONTH)
  if redis.call("ZADD", names, "GT", "CH", DAY, name) == 1 then
    redis.call("ZREMRANGEBYSCORE", names, "-inf", DAY - 31)
    if redis.call("HLEN", limits) == 0 then redis.call("PEXPIRE", names, MONTH + TWO_DAYS) end
  end
end

local function free_of(limit)
  local free = limit - redis.call("ZCARD", holders)
  local weights = redis.call("ZRANGE", heavy, 0, -1, "WITHSCORES")
  for at = 2, #weights, 2 do free = free - (weights[at] - 1) end
  return free
end

local function wait()
  line_up(permit, life)
  local changes_at = math.min(score_of_first(holders) or math.huge, score_of_first(beats))
  return { "wait", math.ceil((changes_at - MICROSECONDS) / 1000) }
end

local function grant()
  redis.call("ZADD", holders, text(MICROSECONDS + lease), permit)
  redis.call("ZADD", since, text(MICROSECONDS), permit)
  redis.call("PEXPIRE", holders, MONTH)
  redis.call("PEXPIRE", since, MONTH)
  if weight > 1 then redis.call("ZADD", heavy, weight, permit) end
  redis.call("PEXPIRE", heavy, MONTH)
  redis.call("HINCRBY", stats, "granted", 1)
end

local function note_wait(arrived_at)
  local waited, longest = MICROSECONDS - arrived_at, tonumber(redis.call("HGET", stats, "longest") or 0)
  remove_waiter(permit)
  redis.call("DEL", wake .. ":" .. permit)
  redis.call("HINCRBY", stats, "waits", 1)
  redis.call("HINCRBY", stats, "waited", text(waited))
  redis.call("HSET", stats, "longest", text(math.max(longest, waited)))
end

-- A full server refuses a script whose first write needs memory. This one changes nothing and needs none, so that
-- tasks under a limit are claimed, and queues drained, however full the server is. There are few permits.
redis.call("ZREM", holders, "")
local gone = end_leases() + remove_dead_waiters()
list()
if gone > 0 then wake_first(permit) end

local ends_at, ended_by = redis.call("ZSCORE", holders, permit), redis.call("GET", ended .. ":" .. permit)
if ends_at then return { "granted", ends_at - MICROSECONDS } end
if ended_by then return { "ended", ended_by } end

local limit = tonumber(redis.call("HGET", limits, name) or declared)
if weight > limit then return { "heavy", limit } end
local free, head = free_of(limit), first_waiter() or permit
if head ~= permit or weight > free then
  if life == 0 then return { "full", 0 } end
  return wait()
end
grant()
local arrived_at = redis.call("ZSCORE", queue, permit)
if arrived_at then note_wait(arrived_at) end
if free > weight then wake_first(permit) end
return { "granted", lease }
