-- USES    time
-- Return the next version of the book: the current microsecond, or the old version plus one if that is greater.
local function next_version()
  return text(math.max(MICROSECONDS, (redis.call("HGET", book, "version") or 0) + 1))
end
