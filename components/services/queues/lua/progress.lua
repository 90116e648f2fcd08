-- Write down how far a running task is, if it is still the caller's. Idempotent by nature.
-- KEYS[1] runs      HASH id -> run record
-- KEYS[2] progress  HASH id -> JSON
-- ARGV[1] id
-- ARGV[2] token of the claim
-- ARGV[3] JSON
-- Returns 1, or 2 if the task is to be cancelled, or 0 if it is no longer the caller's
local runs, progress = KEYS[1], KEYS[2]
local id, token, json = ARGV[1], ARGV[2], ARGV[3]

local state, held_by = string.match(redis.call("HGET", runs, id) or "", "^1 (%S+) (%S+)")
if held_by ~= token then return 0 end
redis.call("HDEL", progress, "") -- needs no memory: a full server lets the next write pass after it
redis.call("HSET", progress, id, json)
return state == "cancelling" and 2 or 1
