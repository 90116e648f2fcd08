-- Declare periodic tasks. The first tick of a new one is the next after now. A repeated call returns the same, except
-- for the time.
-- KEYS    periodic ticked paused_ticks
-- ARGV    kept names...(name limit)
-- USES    time
-- RETURNS now, and for each name its last tick or when it became known, in microseconds. A last tick later than the
--         limit (0: none) was taken by a clock that had jumped ahead, and becomes now
local MOST = 1000 -- names that one call removes
local now = text(MICROSECONDS)
local answer, declared = { now }, {}
-- This write needs no memory, so a server that is out of memory also accepts the next ones.
redis.call("ZREM", periodic, "")
for _, each in ipairs(names) do
  local limit = tonumber(each.limit)
  redis.call("ZADD", periodic, "NX", now, each.name)
  if limit > 0 and tonumber(redis.call("ZSCORE", periodic, each.name)) > limit then
    redis.call("ZADD", periodic, now, each.name)
  end
  answer[#answer + 1] = redis.call("ZSCORE", periodic, each.name)
  declared[each.name] = true
end

-- A name that nobody declares any more is kept for *keep* microseconds after its last tick.
local before = text(MICROSECONDS - kept)
for _, name in ipairs(redis.call("ZRANGEBYSCORE", periodic, "-inf", before, "LIMIT", 0, MOST)) do
  if not declared[name] then
    redis.call("ZREM", periodic, name)
    redis.call("HDEL", ticked, name)
    redis.call("SREM", paused_ticks, name)
  end
end
return answer
