-- Delete tasks of a queue that are in one state, except running ones, with everything stored about them. A repeated
-- call returns the same.
-- KEYS    tasks runs errors progress uniques awaited result ended ready delayed dead successful
-- ARGV    state ids...
-- USES    task ending forget
-- RETURNS how many of them do not exist now
local place = ({ ready = ready, delayed = delayed, dead = dead, successful = successful })[state]
local gone = 0
for _, id in ipairs(ids) do
  if redis.call("ZREM", place, id) == 1 then
    local task = task_of(redis.call("HGET", tasks, id))
    forget({ id })
    redis.call("DEL", result .. id)
    tell_end(id, task and task.unique or "-")
  end
  if redis.call("HEXISTS", tasks, id) + redis.call("EXISTS", result .. id) == 0 then gone = gone + 1 end
end
return gone
