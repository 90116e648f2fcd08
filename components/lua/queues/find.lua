-- Everything that is known of one task. Reads only.
-- KEYS[1] tasks   HASH id -> record
-- KEYS[2] runs    HASH id -> run record
-- KEYS[3] errors  HASH id -> JSON
-- KEYS[4] result  STRING of this task
-- ARGV[1] id
-- Returns now (microseconds), record, run record, errors, result; false for what does not exist
local tasks, runs, errors, result = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local id = ARGV[1]

local time = redis.call("TIME")
local now = string.format("%.0f", time[1] * 1000000 + time[2])
return {
  now, redis.call("HGET", tasks, id), redis.call("HGET", runs, id), redis.call("HGET", errors, id),
  redis.call("GET", result),
}
