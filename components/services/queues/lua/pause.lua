-- Let no worker claim from a queue. Idempotent by nature.
-- KEYS[1] paused  SET of queues
-- ARGV[1] the queue
-- Returns 1
local paused = KEYS[1]
local queue = ARGV[1]

redis.call("SREM", paused, "") -- needs no memory: a full server lets the next write pass after it
redis.call("SADD", paused, queue)
return 1
