-- Read the counts of searches in a book. Only reads.
-- KEYS    usage
-- USES    time
-- RETURNS the current second, then what is stored for each minute of the hour, which may be hours old
local fields = {}
for minute = 0, 59 do fields[#fields + 1] = minute end
return { math.floor(NOW / 1000), unpack(redis.call("HMGET", usage, unpack(fields))) }
