-- Store the progress of a running task if the caller still holds its claim. A repeated call changes nothing.
-- KEYS    runs progress
-- ARGV    id token document
-- USES    run
-- RETURNS 1; 2 if the task is being cancelled; 0 if the caller does not hold its claim any more
local run = run_of(redis.call("HGET", runs, id))
if run.token ~= token then return 0 end
-- This write needs no memory, so a server that is out of memory also accepts the next one.
redis.call("HDEL", progress, "")
redis.call("HSET", progress, id, document)
return run.state == "cancelling" and 2 or 1
