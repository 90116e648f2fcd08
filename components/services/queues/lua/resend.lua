-- Send dead tasks again: ready now, their starts counted from 0, their errors kept. Repeated, each is sent once.
-- KEYS    tasks runs uniques dead ready wake active wake_all
-- ARGV    queue ids...
-- USES    time rouse place task
-- RETURNS the ids that stay dead, since another unfinished task has their unique key; how many are not dead now
local function send_again(id, task)
  redis.call("ZREM", dead, id) -- first, since it needs no memory: a full server lets the rest pass after it
  if task.unique ~= "-" then redis.call("HSET", uniques, task.unique, id) end
  redis.call("HDEL", runs, id)
  redis.call("ZADD", ready, place(task.priority, 0, NOW), id)
  rouse(wake)
  if redis.call("SADD", active, queue) == 1 then rouse(wake_all) end
end

local refused, sent = {}, 0
for _, id in ipairs(ids) do
  local task = task_of(redis.call("HGET", tasks, id))
  if task and redis.call("ZSCORE", dead, id) then
    local rival = redis.call("HGET", uniques, task.unique)
    if rival and redis.call("HEXISTS", tasks, rival) == 1 then
      refused[#refused + 1] = id
    else
      send_again(id, task)
    end
  end
  if task and not redis.call("ZSCORE", dead, id) then sent = sent + 1 end
end
return { refused, sent }
