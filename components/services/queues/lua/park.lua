-- Park tasks of a queue that wait for room under a limit. A repeated call changes nothing.
-- KEYS    limits limited parked
-- ARGV    limit queue kept tasks...(place id)
-- RETURNS how many of this queue are parked
local queues, room = limited .. limit, parked .. limit .. ":" .. queue
-- This write needs no memory, so a server that is out of memory also accepts the next ones.
redis.call("ZREM", room, "")
for _, task in ipairs(tasks) do redis.call("ZADD", room, task.place, task.id) end
redis.call("ZADD", queues, 0, queue)
redis.call("SADD", limits, limit)
for _, key in ipairs({ room, queues, limits }) do redis.call("PEXPIRE", key, kept) end
return redis.call("ZCARD", room)
