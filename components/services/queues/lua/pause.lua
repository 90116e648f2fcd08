-- Let no worker claim from a queue. A repeated call changes nothing.
-- KEYS    paused
-- ARGV    queue
-- RETURNS 1
redis.call("SREM", paused, "") -- needs no memory: a full server lets the next write pass after it
redis.call("SADD", paused, queue)
return 1
