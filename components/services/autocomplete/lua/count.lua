-- Add to the counts of searches in a book, by the minute. A repeated call returns the same.
-- KEYS    book usage calls
-- ARGV    searches spent slowest length call
-- USES    time answer minute
-- RETURNS 1, or 0 if there is no such book
local HOUR = 3600000 -- milliseconds
local before = answer_before()
if before then return tonumber(before) end
if redis.call("EXISTS", book) == 0 then return 0 end

local minute = math.floor(NOW / 60000)
local field = minute % 60
local known = read_minute(redis.call("HGET", usage, field) or "")
if tonumber(known.minute) == minute then
  searches, spent = searches + known.searches, spent + known.spent
  if tonumber(known.slowest) >= tonumber(slowest) then slowest, length = known.slowest, known.length end
end
redis.call("HSET", usage, field, write_minute({
  minute = text(minute), searches = text(searches), spent = text(spent), slowest = slowest, length = length,
}))
redis.call("PEXPIRE", usage, HOUR)
return answer(1)
