-- End a load: what it brought becomes the book, in one step. Repeated, it says the same again.
-- KEYS[1] book      HASH version, count, when it was loaded, by which rules names were folded
-- KEYS[2] entries   ZSET search key, \1, id: from the beginning and from each word on
-- KEYS[3] rows      HASH part of a digest of the id -> rows, each after \2
-- KEYS[4] selected  ZSET the members of entries that were ever selected
-- KEYS[5] tops      HASH prefix that many of the selected match -> the best of them
-- KEYS[6] loading   HASH token and count of the load that runs
-- KEYS[7] next_entries   ZSET as entries, of that load
-- KEYS[8] next_rows      HASH as rows, of that load
-- KEYS[9] next_selected  ZSET as selected, of that load
-- KEYS[10] changed  SET ids that changed while it ran
-- KEYS[11] answered STRING what this call was answered
-- ARGV[1] token of the load
-- ARGV[2] the number of the rules by which its names were folded
-- Returns how many entries the book has now; -1 if another load has begun
local book, entries, rows, selected, tops = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local loading, next_entries, next_rows = KEYS[6], KEYS[7], KEYS[8]
local next_selected, changed, answered = KEYS[9], KEYS[10], KEYS[11]
local token, folding = ARGV[1], ARGV[2]
local MINUTE = 60000 -- milliseconds

local before = redis.call("GET", answered)
if before then return tonumber(before) end
if redis.call("HGET", loading, "token") ~= token then return -1 end
local time = redis.call("TIME")
local now = time[1] * 1000000 + time[2]
local count = tonumber(redis.call("HGET", loading, "count") or 0)
redis.call("UNLINK", entries, rows, selected, tops, loading, changed)
for from, to in pairs({ [next_entries] = entries, [next_rows] = rows, [next_selected] = selected }) do
  if redis.call("EXISTS", from) == 1 then
    redis.call("RENAME", from, to)
    redis.call("PERSIST", to)
  end
end
local version = string.format("%.0f", math.max(now, (redis.call("HGET", book, "version") or 0) + 1))
redis.call("HSET", book, "version", version, "count", count, "folding", folding)
redis.call("HSET", book, "loaded_at", string.format("%.0f", now))
redis.call("SET", answered, count, "PX", MINUTE)
return count
