-- Read what is counted of the searches in a book. Only reads.
-- KEYS    usage
-- USES    time
-- RETURNS the second that it is, then what is there for each minute of the hour, which may be hours old
local fields = {}
for minute = 0, 59 do fields[#fields + 1] = minute end
return { math.floor(NOW / 1000), unpack(redis.call("HMGET", usage, unpack(fields))) }
