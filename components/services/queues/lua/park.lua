-- Note tasks that wait for room under a limit. Idempotent by nature.
-- KEYS[1] parked  ZSET "id queue" by their place among the ready
-- ARGV[1] how long they are kept, milliseconds
-- ARGV[2..] per task: its place; its id and its queue
-- Returns how many are noted
local parked = KEYS[1]
local kept = ARGV[1]

redis.call("ZREM", parked, "") -- needs no memory: a full server lets the next writes pass after it
for at = 2, #ARGV, 2 do redis.call("ZADD", parked, ARGV[at], ARGV[at + 1]) end
redis.call("PEXPIRE", parked, kept)
return redis.call("ZCARD", parked)
