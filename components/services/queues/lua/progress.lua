-- Write down how far a running task is, if it is still the caller's. A repeated call changes nothing.
-- KEYS    runs progress
-- ARGV    id token document
-- USES    run
-- RETURNS 1, or 2 if the task is to be cancelled, or 0 if it is no longer the caller's
local run = run_of(redis.call("HGET", runs, id))
if run.token ~= token then return 0 end
redis.call("HDEL", progress, "") -- needs no memory: a full server lets the next write pass after it
redis.call("HSET", progress, id, document)
return run.state == "cancelling" and 2 or 1
