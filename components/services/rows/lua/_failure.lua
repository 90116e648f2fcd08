-- RECORD  failure: count tried_at
-- After these comes the error, which may have blanks.
local function failure_of(member) return read_failure(redis.call("HGET", failures, member) or "") end
