-- RECORD  failure: count tried_at
-- The error follows these fields. It may contain blanks.
local function failure_of(member) return read_failure(redis.call("HGET", failures, member) or "") end
