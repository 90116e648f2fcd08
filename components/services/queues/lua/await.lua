-- Note that somebody waits for the end of a task, unless it has ended. A repeated call changes nothing.
-- KEYS    tasks runs awaited
-- ARGV    id
-- USES    run
-- RETURNS 1, or 0 if the task has ended or there is none
local ENDED = { dead = true, crashed = true, cancelled = true }
local run = run_of(redis.call("HGET", runs, id))
if ENDED[run.state] or redis.call("HEXISTS", tasks, id) == 0 then return 0 end
redis.call("SREM", awaited, "") -- needs no memory: a full server lets the next write pass after it
redis.call("SADD", awaited, id)
return 1
