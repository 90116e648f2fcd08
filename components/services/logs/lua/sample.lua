-- Keep lines that an aggregation has rejected, to show them; only the newest. A repeated call keeps each once.
-- KEYS    samples
-- ARGV    name most lines...
-- USES    time
-- RETURNS how many there are
local kept = samples .. name
redis.call("ZREMRANGEBYRANK", kept, 0, -1 - most) -- first: a server that is full allows it
for _, line in ipairs(lines) do redis.call("ZADD", kept, "NX", NOW, line) end
redis.call("ZREMRANGEBYRANK", kept, 0, -1 - most)
return redis.call("ZCARD", kept)
