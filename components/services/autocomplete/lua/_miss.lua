-- RECORD  miss: count second
-- A search that found nothing: how often, and the second of the last time.

-- Return all of them, at most 200: each text and its record, in turn.
local function stored_misses() return redis.call("HGETALL", missed) end
