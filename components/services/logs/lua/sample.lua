-- Store rejected lines of an aggregation, to show them, and keep only the newest. A repeated call stores each once.
-- KEYS    samples
-- ARGV    name most lines...
-- USES    time ahead
-- RETURNS how many there are
local kept = samples .. name
-- First, because a server that is out of memory runs a script only if its first write needs no memory.
redis.call("ZREMRANGEBYRANK", kept, 0, -1 - most)
bring_back(kept, NOW)
for _, line in ipairs(lines) do redis.call("ZADD", kept, "NX", NOW, line) end
redis.call("ZREMRANGEBYRANK", kept, 0, -1 - most)
return redis.call("ZCARD", kept)
