-- Add to what is counted of the searches in a book, by the minute. Repeated, it says the same again.
-- KEYS[1] book      HASH version, count, when it was loaded, by which rules names were folded
-- KEYS[2] usage     HASH minute of the hour -> the minute, its searches, their microseconds, the slowest, its length
-- KEYS[3] answered  STRING what this call was answered
-- ARGV[1] how many searches there were
-- ARGV[2] their microseconds in all
-- ARGV[3] the microseconds of the slowest
-- ARGV[4] the characters of its prefix
-- Returns 1, or 0 if there is no such book
local book, usage, answered = KEYS[1], KEYS[2], KEYS[3]
local searches, spent, slowest, length = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local MINUTE, HOUR = 60000, 3600000 -- milliseconds

local before = redis.call("GET", answered)
if before then return tonumber(before) end
if redis.call("EXISTS", book) == 0 then return 0 end
local minute = math.floor(redis.call("TIME")[1] / 60)
local field = minute % 60
local known = {}
for number in string.gmatch(redis.call("HGET", usage, field) or "", "%d+") do known[#known + 1] = tonumber(number) end
if known[1] == minute then
  searches, spent = searches + known[2], spent + known[3]
  if known[4] >= slowest then slowest, length = known[4], known[5] end
end
redis.call("HSET", usage, field, string.format("%.0f %.0f %.0f %.0f %.0f", minute, searches, spent, slowest, length))
redis.call("PEXPIRE", usage, HOUR)
redis.call("SET", answered, 1, "PX", MINUTE)
return 1
