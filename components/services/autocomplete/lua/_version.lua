-- USES    time
-- Return the next version of the book: the microsecond, or more if that would not be greater.
local function next_version()
  return text(math.max(MICROSECONDS, (redis.call("HGET", book, "version") or 0) + 1))
end
