-- Note that somebody waits for the end of a task, unless it has ended. Idempotent by nature.
-- KEYS[1] tasks    HASH id -> record
-- KEYS[2] runs     HASH id -> run record
-- KEYS[3] awaited  SET of ids whose end somebody waits for
-- ARGV[1] id
-- Returns 1, or 0 if the task has ended or there is none
local tasks, runs, awaited = KEYS[1], KEYS[2], KEYS[3]
local id = ARGV[1]

local ended = { dead = true, crashed = true, cancelled = true }
local state = string.match(redis.call("HGET", runs, id) or "", "^1 (%S+)")
if ended[state or ""] or redis.call("HEXISTS", tasks, id) == 0 then return 0 end
redis.call("SREM", awaited, "") -- needs no memory: a full server lets the next write pass after it
redis.call("SADD", awaited, id)
return 1
