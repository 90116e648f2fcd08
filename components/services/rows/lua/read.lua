-- Read rows, all as one text, which costs the reader less than many texts. Only reads.
-- KEYS    rows...
-- USES    time
-- RETURNS the microsecond; JSON, a list of the rows, null for each that is not there
local found = redis.call("MGET", unpack(rows))
for at = 1, #rows do found[at] = found[at] or "null" end
return { text(MICROSECONDS), "[" .. table.concat(found, ",") .. "]" }
