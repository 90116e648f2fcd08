-- Record that a caller waits for the end of a task, unless it has ended. A repeated call changes nothing.
-- KEYS    tasks runs awaited
-- ARGV    id
-- USES    run
-- RETURNS 1, or 0 if the task has ended or there is none
local ENDED = { dead = true, crashed = true, cancelled = true, expired = true }
local run = run_of(redis.call("HGET", runs, id))
if ENDED[run.state] or redis.call("HEXISTS", tasks, id) == 0 then return 0 end
-- This write needs no memory, so a server that is out of memory also accepts the next one.
redis.call("SREM", awaited, "")
redis.call("SADD", awaited, id)
return 1
