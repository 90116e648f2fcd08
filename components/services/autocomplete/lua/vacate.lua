-- Remove a book that all have left, unless it is being loaded. Idempotent by nature.
-- KEYS[1] book      HASH version, count, when it was loaded, by which rules names were folded
-- KEYS[2] entries   ZSET search key, \1, id: from the beginning and from each word on
-- KEYS[3] rows      HASH part of a digest of the id -> rows, each after \2
-- KEYS[4] selected  ZSET the members of entries that were ever selected
-- KEYS[5] ranks     ZSET id by the logarithm of its selections, as they decay
-- KEYS[6] tops      HASH prefix that many of the selected match -> the best of them
-- KEYS[7] loading   HASH token and count of the load that runs
-- KEYS[8] usage     HASH minute of the hour -> the minute, its searches, their microseconds, the slowest, its length
-- Returns 1 if there is no such book now, else 0
local book, entries, rows, selected = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local ranks, tops, loading, usage = KEYS[5], KEYS[6], KEYS[7], KEYS[8]

if redis.call("EXISTS", book) == 0 then return 1 end
local count = tonumber(redis.call("HGET", book, "count") or 0)
if count > 0 or redis.call("EXISTS", loading) == 1 then return 0 end
redis.call("UNLINK", book, entries, rows, selected, ranks, tops, usage)
return 1
