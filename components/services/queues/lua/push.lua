-- Push tasks: runnable at once, or at an instant. Repeated, each task is still stored once.
-- *due* is a microsecond, or "+" and the microseconds from now, or 0: now. *lease* is in milliseconds, 0 for that of
-- the backend. *unique* is "-" for none. *tick* is a microsecond; *place* says which of the pushed tasks it belongs
-- to. If the last tick of that name is later than *limit* (0: no limit), a clock that had jumped ahead took it, and
-- it counts as none. The ticks of a paused name are taken, and their tasks are not stored.
-- KEYS    tasks runs uniques periodic ticked paused_ticks names active wake_all wake_poller result
--         queues...(ready delayed wake)
-- ARGV    due_first pushed...(number queue id due priority lease unique body) ticks...(place name tick limit)
-- USES    time rouse place rival
-- RETURNS for each task the microsecond at which it was enqueued; instead, "=" and the id of the unfinished task that
--         has its unique key, or "" if the tick was taken or is paused; and of ticks that counted as none: name,
--         instant, ...
local KEPT = 12 -- ids of each name
local now, ahead = text(MICROSECONDS), {}

-- Return the answer for a task that is not stored, which says why; or nil.
local function refusal(task, is_taken)
  local before = string.match(redis.call("HGET", tasks, task.id) or "", "^%d+ (%d+)")
  local rival = not before and rival_of(task.unique)
  return before or rival and "=" .. rival or is_taken and "" or nil
end

-- Take a tick, and return whether that, or a later one, was taken before, or its name is paused.
local function take(tick)
  local last, limit = tonumber(redis.call("ZSCORE", periodic, tick.name) or ""), tonumber(tick.limit)
  if last and limit > 0 and last > limit then
    ahead[#ahead + 1], ahead[#ahead + 2] = tick.name, string.format("%.0f", last)
    last = nil
  end
  if last and last >= tonumber(tick.tick) then return true end
  redis.call("ZADD", periodic, tick.tick, tick.name)
  return redis.call("SISMEMBER", paused_ticks, tick.name) == 1
end

-- Note the task of a tick.
local function note(name, id)
  local ids = { id }
  for before in string.gmatch(redis.call("HGET", ticked, name) or "", "%S+") do
    if #ids < KEPT then ids[#ids + 1] = before end
  end
  redis.call("HSET", ticked, name, table.concat(ids, " "))
end

-- Store a task, unless it is there, and return when it was enqueued.
local function store(task)
  local due, queue = tonumber(task.due), queues[tonumber(task.number)]
  if string.sub(task.due, 1, 1) == "+" then
    due = MICROSECONDS + due
    task.due = text(due)
  end
  local head = { "1", now, task.due, task.priority, due_first, task.lease, task.unique, task.queue }
  local record = table.concat(head, " ") .. "\n" .. task.body
  if redis.call("HSETNX", tasks, task.id, record) == 0 then
    local answer = refusal(task)
    if answer then return answer end
    redis.call("HSET", tasks, task.id, record)
  end
  if task.unique ~= "-" then redis.call("HSET", uniques, task.unique, task.id) end
  if redis.call("SADD", active, task.queue) == 1 then -- a queue that was active is listed already
    redis.call("SADD", names, task.queue)
    rouse(wake_all)
  end
  if due <= MICROSECONDS then
    redis.call("ZADD", queue.ready, place(task.priority, 0, NOW), task.id)
    rouse(queue.wake)
    return now
  end
  redis.call("ZADD", queue.delayed, due, task.id)
  if redis.call("ZRANGE", queue.delayed, 0, 0)[1] == task.id then
    rouse(queue.wake)
    rouse(wake_poller)
  end
  return now
end

for _, tick in ipairs(ticks) do pushed[tonumber(tick.place)].tick = tick end
local enqueued = {}
for at, task in ipairs(pushed) do
  local is_taken = task.tick and take(task.tick) -- even if another task stands for this one
  local answer = redis.call("EXISTS", result .. task.id) == 1 and now
  if not answer and (task.tick or task.unique ~= "-") then answer = refusal(task, is_taken) end
  enqueued[at] = answer or store(task)
  if task.tick and not answer then note(task.tick.name, task.id) end
end
return { enqueued, ahead }
