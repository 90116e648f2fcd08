-- Remove dead tasks by age and number, and entries of the list of successful ones by age. One call removes *most*
-- dead tasks at most. What a clock has stored that had jumped ahead becomes as if it were stored now: leases, places
-- among the ready, and when delayed tasks are due, of which a call looks at a page, and each minute at the next one.
-- *parked* and *each* are the microseconds until a parked task is due, and those more for each other one.
-- Queues without any task are removed. Other durations are milliseconds. A repeated call changes nothing.
-- KEYS    tasks runs errors progress names active paused
--         queues...(ready delayed running dead successful trimmed wake)
-- ARGV    dead_kept dead_limit listed_for most lease parked each queue_names...
-- USES    time task forget run place ahead
-- RETURNS how many dead tasks were removed
-- Milliseconds by which the leases of other workers may be longer, and the number of leases that one call examines.
local HOUR, DAY, LOOKED_AT = 3600000, 86400000, 100
local MINUTE = 60000 -- milliseconds

local function let_go(queue, left)
  local dead = queue.dead
  local too_old = redis.call("ZCOUNT", dead, "-inf", NOW - dead_kept)
  local too_many = redis.call("ZCARD", dead) - dead_limit
  local count = math.min(math.max(too_old, too_many), left)
  if count < 1 then return 0 end
  local ids = redis.call("ZRANGE", dead, 0, count - 1)
  redis.call("ZREM", dead, unpack(ids))
  forget(ids)
  if count > too_old then
    redis.call("INCRBY", queue.trimmed, count - too_old)
    redis.call("PEXPIRE", queue.trimmed, DAY)
  end
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

local function bring_back_ready(ready)
  local from, last = "0", text(402 * SPAN) -- see _sizes.lua
  while true do
    local score = tonumber(redis.call("ZRANGEBYSCORE", ready, from, last, "WITHSCORES", "LIMIT", 0, 1)[2])
    if not score then break end
    local rank = math.floor(score / SPAN) * SPAN
    bring_back(ready, rank + NOW, rank + SPAN)
    from = text(rank + SPAN)
  end
end

-- Return the microsecond when a delayed task is due, if it was put off by a clock that had jumped ahead. Its last
-- start lies ahead then; or it has none, and is parked although it was due before, for longer than any can be.
local function due_again(due, record, task, longest)
  local run = run_of(record)
  local ahead = (tonumber(run.last) or 0) - MICROSECONDS
  if ahead > 0 then return MICROSECONDS + math.max(0, due - run.last), run end
  local was_due = task and tonumber(task.due) and tonumber(task.due) <= MICROSECONDS
  if not record and was_due and due > MICROSECONDS + longest then return MICROSECONDS + longest end
end

local function bring_back_delayed(delayed)
  local count = redis.call("ZCARD", delayed)
  if count == 0 then return end
  local page = math.floor(NOW / MINUTE) % math.ceil(count / LOOKED_AT) * LOOKED_AT
  local found, ids = redis.call("ZRANGE", delayed, page, page + LOOKED_AT - 1, "WITHSCORES"), {}
  for at = 1, #found, 2 do ids[#ids + 1] = found[at] end
  local records = redis.call("HMGET", runs, unpack(ids))
  for at, id in ipairs(ids) do
    local task = not records[at] and task_of(redis.call("HGET", tasks, id))
    local due, run = due_again(tonumber(found[2 * at]), records[at], task, parked + each * count)
    if due then redis.call("ZADD", delayed, text(due), id) end
    if run then
      run.last = text(MICROSECONDS)
      save_run(id, run)
    end
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
  gone = gone + let_go(queue, most - gone)
  shorten_leases(queue.running)
  bring_back(queue.dead, NOW)
  bring_back(queue.successful, NOW)
  bring_back_ready(queue.ready)
  bring_back_delayed(queue.delayed)
  forget_queue(queue, name)
end
return gone
