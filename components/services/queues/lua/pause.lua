-- Let no worker claim from a queue. A repeated call returns the same.
-- KEYS    paused pausing
-- ARGV    queue call
-- RETURNS 1 if this call paused the queue; 0 if it was paused before
local before = redis.call("GET", pausing .. call)
if before then return tonumber(before) end
redis.call("SREM", paused, "") -- needs no memory: a full server lets the next write pass after it
local is_new = redis.call("SADD", paused, queue)
redis.call("SET", pausing .. call, is_new, "PX", 60000)
return is_new
