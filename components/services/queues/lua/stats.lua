-- Count the tasks of queues. Only reads.
-- KEYS    paused runs queues...(ready delayed running dead successful cut trimmed)
-- ARGV    names...
-- USES    time sizes
-- RETURNS now, in microseconds; and for each queue its sizes, see _sizes.lua
local answer = { text(MICROSECONDS) }
for at, name in ipairs(names) do answer[at + 1] = sizes_of(queues[at], name) end
return answer
