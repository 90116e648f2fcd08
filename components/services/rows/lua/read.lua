-- Read rows, all as one text, which costs the reader less than many. Reads only.
-- KEYS[1..] rows  STRING JSON
-- Returns microsecond; JSON: a list of the rows, null where there is none
local found = redis.call("MGET", unpack(KEYS))

local time = redis.call("TIME")
for at = 1, #KEYS do found[at] = found[at] or "null" end
return { string.format("%.0f", time[1] * 1000000 + time[2]), "[" .. table.concat(found, ",") .. "]" }
