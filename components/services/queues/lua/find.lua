-- Everything that is known of one task. Reads only.
-- KEYS[1] tasks     HASH id -> record
-- KEYS[2] runs      HASH id -> run record
-- KEYS[3] errors    HASH id -> JSON
-- KEYS[4] progress  HASH id -> JSON
-- KEYS[5] result    STRING of this task
-- ARGV[1] id
-- Returns record, run record, errors, progress, result; false for what does not exist
local tasks, runs, errors, progress, result = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local id = ARGV[1]

return {
  redis.call("HGET", tasks, id), redis.call("HGET", runs, id), redis.call("HGET", errors, id),
  redis.call("HGET", progress, id), redis.call("GET", result),
}
