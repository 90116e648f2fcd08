-- Pause a queue, so that no worker claims from it. A repeated call returns the same.
-- KEYS    paused pausing
-- ARGV    queue call
-- RETURNS 1 if this call paused the queue; 0 if it was paused before
local before = redis.call("GET", pausing .. call)
if before then return tonumber(before) end
-- This write needs no memory, so a server that is out of memory also accepts the next one.
redis.call("SREM", paused, "")
local is_new = redis.call("SADD", paused, queue)
redis.call("SET", pausing .. call, is_new, "PX", 60000)
return is_new
