-- Return the last ticks of periodic tasks. Only reads.
-- KEYS    periodic
-- ARGV    names...
-- USES    time
-- RETURNS now, and for each name its last tick or when it became known, in microseconds; false if it is not known
local answer = { text(MICROSECONDS) }
for at, name in ipairs(names) do answer[at + 1] = redis.call("ZSCORE", periodic, name) end
return answer
