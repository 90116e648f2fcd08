-- Return how many counters of a bucket each family has. Only reads.
-- KEYS    names
-- ARGV    families...
-- RETURNS for each family, the number
local sizes = {}
for at, family in ipairs(families) do sizes[at] = redis.call("ZCARD", names .. ":" .. family) end
return sizes
