-- Write down what a worker is asked to do. Idempotent by nature.
-- KEYS[1] order  STRING
-- ARGV[1] the order
-- ARGV[2] how long it is kept, milliseconds
-- Returns 1
local order = KEYS[1]
local said, kept = ARGV[1], ARGV[2]

redis.call("DEL", order) -- needs no memory: a full server lets the next write pass after it
redis.call("SET", order, said, "PX", kept)
return 1
