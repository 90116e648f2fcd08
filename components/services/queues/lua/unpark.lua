-- Make the first task that is parked under a limit due after a number of microseconds, and wake a worker for it.
-- Paused queues are passed over. If ready or due tasks of its queue wait, perhaps since no worker serves it, the
-- first in a queue where none waits is due as well. A repeated call makes no other task due.
-- KEYS    limits limited parked unparked paused queues...(ready delayed wake)
-- ARGV    limit caller delay
-- USES    time rouse
-- RETURNS how many tasks are due
-- The most outdated entries of a queue that one call removes, and the milliseconds for which a call may be repeated.
local MOST, REPEATED = 100, 60000
local asked, any = unparked .. caller, queues[1] -- the name of a queue is appended to its keys

local said = redis.call("GET", asked)
if said then return tonumber(said) end

-- Return the first task of a queue that still waits there.
local function first(queue)
  local room = parked .. limit .. ":" .. queue
  for _ = 1, MOST do
    local id, place = unpack(redis.call("ZRANGE", room, 0, 0, "WITHSCORES"))
    if not id then
      redis.call("ZREM", limited .. limit, queue)
      if redis.call("EXISTS", limited .. limit) == 0 then redis.call("SREM", limits, limit) end
      return
    end
    if redis.call("ZSCORE", any.delayed .. queue, id) then
      return { room = room, id = id, place = tonumber(place), queue = queue }
    end
    redis.call("ZREM", room, id) -- it was started, cancelled or deleted meanwhile
  end
end

-- Return whether no task of a queue waits for a worker: to be claimed, or to be moved to the ready ones.
local function is_served(queue)
  local due = redis.call("ZRANGE", any.delayed .. queue, 0, 0, "WITHSCORES")[2]
  return redis.call("ZCARD", any.ready .. queue) == 0 and (not due or tonumber(due) > MICROSECONDS)
end

local found, due = {}, 0
for _, queue in ipairs(redis.call("ZRANGE", limited .. limit, 0, -1)) do
  if redis.call("SISMEMBER", paused, queue) == 0 then found[#found + 1] = first(queue) end
end
table.sort(found, function(one, other)
  return one.place < other.place or one.place == other.place and one.id < other.id
end)

for at, task in ipairs(found) do
  local is_next = is_served(task.queue)
  if at == 1 or is_next then
    redis.call("ZREM", task.room, task.id)
    redis.call("ZADD", any.delayed .. task.queue, text(MICROSECONDS + delay), task.id)
    rouse(any.wake .. task.queue)
    due = due + 1
  end
  if is_next then break end
end
redis.call("SET", asked, due, "PX", REPEATED)
return due
