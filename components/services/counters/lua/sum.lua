-- Add to sums. A call that is repeated with its number changes nothing.
-- KEYS    sums source
-- ARGV    call added...(name number)
-- RETURNS 1
local HOUR, MONTH = 3600, 2592000
if tonumber(redis.call("GET", source) or 0) >= tonumber(call) then return 1 end
-- The number is stored first: if an error ends the script, the call is not made again.
redis.call("SET", source, call, "EX", HOUR)
for _, each in ipairs(added) do redis.call("HINCRBY", sums, each.name, each.number) end
redis.call("EXPIRE", sums, MONTH)
return 1
