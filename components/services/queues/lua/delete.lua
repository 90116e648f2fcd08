-- Delete tasks of a queue that are in one state, or in any ("") but running, with everything stored about them. A
-- repeated call returns the same.
-- KEYS    tasks runs errors progress uniques awaited result ended ready delayed dead successful
-- ARGV    state ids...
-- USES    task ending forget
-- RETURNS how many of them do not exist now
local named = { ready = ready, delayed = delayed, dead = dead, successful = successful }
local places, gone = state == "" and { ready, delayed, dead, successful } or { named[state] }, 0

local function removed(id)
  for _, place in ipairs(places) do
    if redis.call("ZREM", place, id) == 1 then return true end
  end
  return state == "" and redis.call("EXISTS", result .. id) == 1 -- the list of successful tasks is bounded
end

for _, id in ipairs(ids) do
  if removed(id) then
    local task = task_of(redis.call("HGET", tasks, id))
    forget({ id })
    redis.call("DEL", result .. id)
    tell_end(id, task and task.unique or "-")
  end
  if redis.call("HEXISTS", tasks, id) + redis.call("EXISTS", result .. id) == 0 then gone = gone + 1 end
end
return gone
