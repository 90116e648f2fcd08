-- Store a request to a worker for a number of milliseconds. A repeated call changes nothing.
-- KEYS    order
-- ARGV    worker_id said kept
-- RETURNS 1
-- This write needs no memory, so a server that is out of memory also accepts the next one.
redis.call("DEL", order .. worker_id)
redis.call("SET", order .. worker_id, said, "PX", kept)
return 1
