-- Send dead tasks again: they are ready now, have no starts, and keep their errors. If one had expired, its time to
-- expire begins again. A repeated call sends none twice.
-- KEYS    tasks runs uniques dead ready wake active wake_all
-- ARGV    queue ids...
-- USES    time rouse place task run rival
-- RETURNS the ids that stay dead because another unfinished task has their unique key; how many are no longer dead
local function send_again(id, task)
  -- First, because it needs no memory: a server that is out of memory then runs the rest of the script.
  redis.call("ZREM", dead, id)
  if task.unique ~= "-" then redis.call("HSET", uniques, task.unique, id) end
  if run_of(redis.call("HGET", runs, id)).state == "expired" then
    local record = string.gsub(redis.call("HGET", tasks, id), "^(%S+ %S+) %S+", "%1 " .. text(MICROSECONDS), 1)
    redis.call("HSET", tasks, id, record)
  end
  redis.call("HDEL", runs, id)
  redis.call("ZADD", ready, place(task.priority, 0, NOW), id)
  rouse(wake)
  if redis.call("SADD", active, queue) == 1 then rouse(wake_all) end
end

local refused, sent = {}, 0
for _, id in ipairs(ids) do
  local task = task_of(redis.call("HGET", tasks, id))
  if task and redis.call("ZSCORE", dead, id) then
    if rival_of(task.unique) then
      refused[#refused + 1] = id
    else
      send_again(id, task)
    end
  end
  if task and not redis.call("ZSCORE", dead, id) then sent = sent + 1 end
end
return { refused, sent }
