-- Read what is counted of the searches in a book. Reads only.
-- KEYS[1] usage  HASH minute of the hour -> the minute, its searches, their microseconds, the slowest, its length
-- Returns the second that it is, then for each minute of the hour what is there of it, which may be hours old
local usage = KEYS[1]

local fields = {}
for minute = 0, 59 do fields[#fields + 1] = minute end
return { tonumber(redis.call("TIME")[1]), unpack(redis.call("HMGET", usage, unpack(fields))) }
