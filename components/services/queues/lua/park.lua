-- Park tasks that wait for room under a limit. A repeated call changes nothing.
-- KEYS    parked
-- ARGV    limit kept tasks...(place member)
-- RETURNS how many are parked
local key = parked .. limit
-- This write needs no memory, so a server that is out of memory also accepts the next ones.
redis.call("ZREM", key, "")
for _, task in ipairs(tasks) do redis.call("ZADD", key, task.place, task.member) end
redis.call("PEXPIRE", key, kept)
return redis.call("ZCARD", key)
