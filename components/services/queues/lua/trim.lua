-- Remove dead tasks by age and number, and entries of the list of successful ones by age. One call removes *most*
-- dead tasks at most. Leases so long that the clock must have jumped ahead are shortened as if they were given now.
-- Queues without any task are removed. Durations are milliseconds. A repeated call changes nothing.
-- KEYS    tasks runs errors progress names active paused
--         queues...(ready delayed running dead successful wake)
-- ARGV    dead_kept dead_limit listed_for most lease queue_names...
-- USES    time task forget
-- RETURNS how many dead tasks were removed
-- Milliseconds by which the leases of other workers may be longer, and the number of leases that one call examines.
local HOUR, LOOKED_AT = 3600000, 100

local function let_go(dead, left)
  local too_old = redis.call("ZCOUNT", dead, "-inf", NOW - dead_kept)
  local too_many = redis.call("ZCARD", dead) - dead_limit
  local count = math.min(math.max(too_old, too_many), left)
  if count < 1 then return 0 end
  local ids = redis.call("ZRANGE", dead, 0, count - 1)
  redis.call("ZREM", dead, unpack(ids))
  forget(ids)
  return count
end

local function shorten_leases(running)
  local too_late = "(" .. NOW + lease + HOUR
  for _, id in ipairs(redis.call("ZREVRANGEBYSCORE", running, "+inf", too_late, "LIMIT", 0, LOOKED_AT)) do
    local task = task_of(redis.call("HGET", tasks, id))
    local own = task and tonumber(task.lease) or 0
    local ends = NOW + (own > 0 and own or lease)
    if tonumber(redis.call("ZSCORE", running, id)) > ends + HOUR then redis.call("ZADD", running, ends, id) end
  end
end

local function forget_queue(queue, name)
  local held = redis.call("EXISTS", queue.ready, queue.delayed, queue.running, queue.dead, queue.successful)
  if held == 0 and redis.call("SISMEMBER", paused, name) == 0 then
    redis.call("SREM", names, name)
    redis.call("SREM", active, name)
    redis.call("DEL", queue.wake)
  end
end

local gone = 0
for at, name in ipairs(queue_names) do
  local queue = queues[at]
  redis.call("ZREMRANGEBYSCORE", queue.successful, "-inf", NOW - listed_for)
  gone = gone + let_go(queue.dead, most - gone)
  shorten_leases(queue.running)
  forget_queue(queue, name)
end
return gone
