-- Push tasks: runnable at once, or at an instant. Repeated, each task is still stored once. It is due at a
-- microsecond, at + and so many from now, or at 0: now. Its lease is in milliseconds, 0 for that of the backend.
-- Its unique key may be "-": none. A tick is the microsecond of one of the periodic task tick_name, or 0; if the last
-- one is later than tick_limit (0: none), it was taken by a clock that had jumped ahead, and counts as none.
-- KEYS    tasks uniques periodic names active wake_all wake_poller result queues...(ready delayed wake)
-- ARGV    due_first pushed...(number queue id due priority lease unique tick tick_limit tick_name body)
-- USES    time rouse place
-- RETURNS for each task the microsecond at which it was enqueued; instead, "=" and the id of the unfinished task that
--         has its unique key, or "" if the tick was taken; and of ticks that counted as none: name, instant, ...
local now, ahead = text(MICROSECONDS), {}

-- Return why a task is not stored: what the caller is told instead; or nil.
local function known(task)
  local before = string.match(redis.call("HGET", tasks, task.id) or "", "^%d+ (%d+)")
  if before then return before end
  if redis.call("EXISTS", result .. task.id) == 1 then return now end
  local rival = task.unique ~= "-" and redis.call("HGET", uniques, task.unique)
  if rival and redis.call("HEXISTS", tasks, rival) == 1 then return "=" .. rival end
end

-- Take the tick that a task stands for, and return whether that, or a later one, was taken before.
local function take_tick(task)
  local last = tonumber(redis.call("ZSCORE", periodic, task.tick_name) or "")
  local tick, limit = tonumber(task.tick), tonumber(task.tick_limit)
  if last and limit > 0 and last > limit then
    ahead[#ahead + 1], ahead[#ahead + 2] = task.tick_name, text(last)
    last = nil
  end
  if last and last >= tick then return true end
  redis.call("ZADD", periodic, task.tick, task.tick_name)
end

local function store(task)
  local due, queue = tonumber(task.due), queues[tonumber(task.number)]
  if string.sub(task.due, 1, 1) == "+" then
    due = MICROSECONDS + due
    task.due = text(due)
  end
  local head = { "1", now, task.due, task.priority, due_first, task.lease, task.unique, task.queue }
  redis.call("HSET", tasks, task.id, table.concat(head, " ") .. "\n" .. task.body)
  if task.unique ~= "-" then redis.call("HSET", uniques, task.unique, task.id) end
  redis.call("SADD", names, task.queue)
  if redis.call("SADD", active, task.queue) == 1 then rouse(wake_all) end
  if due <= MICROSECONDS then
    redis.call("ZADD", queue.ready, place(task.priority, 0, NOW), task.id)
    rouse(queue.wake)
    return
  end
  redis.call("ZADD", queue.delayed, due, task.id)
  if redis.call("ZRANGE", queue.delayed, 0, 0)[1] == task.id then
    rouse(queue.wake)
    rouse(wake_poller)
  end
end

local enqueued = {}
for at, task in ipairs(pushed) do
  local answer = known(task)
  local is_taken = task.tick ~= "0" and take_tick(task) -- also where another task stands for it
  answer = answer or is_taken and ""
  if not answer then store(task) end
  enqueued[at] = answer or now
end
return { enqueued, ahead }
