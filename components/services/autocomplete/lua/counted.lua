-- Read the counts of searches in a book and, if *misses* is 1, the searches that found nothing. Only reads.
-- KEYS    usage missed
-- ARGV    misses
-- USES    time miss
-- RETURNS the current second; what is stored for each minute of the hour, which may be hours old; and each text that
--         found nothing with what is stored of it, in turn
local fields = {}
for minute = 0, 59 do fields[#fields + 1] = minute end
local stored = misses == "1" and stored_misses() or {}
return { math.floor(NOW / 1000), redis.call("HMGET", usage, unpack(fields)), stored }
