-- Note tasks that wait for room under a limit. A repeated call changes nothing.
-- KEYS    parked
-- ARGV    limit kept tasks...(place member)
-- RETURNS how many are noted
local key = parked .. limit
redis.call("ZREM", key, "") -- needs no memory: a full server lets the next writes pass after it
for _, task in ipairs(tasks) do redis.call("ZADD", key, task.place, task.member) end
redis.call("PEXPIRE", key, kept)
return redis.call("ZCARD", key)
