-- Write down what a worker is asked to do, for so many milliseconds. A repeated call changes nothing.
-- KEYS    order
-- ARGV    worker_id said kept
-- RETURNS 1
redis.call("DEL", order .. worker_id) -- needs no memory: a full server lets the next write pass after it
redis.call("SET", order .. worker_id, said, "PX", kept)
return 1
