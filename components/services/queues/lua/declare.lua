-- Make periodic tasks known: the first tick of one never seen before is the next after now. A repeated call returns
-- the same, but for the time.
-- KEYS    periodic
-- ARGV    kept names...(name limit)
-- USES    time
-- RETURNS now, and for each name its last tick or when it became known, in microseconds. A last tick later than the
--         limit (0: none) was taken by a clock that had jumped ahead, and becomes now
local MOST = 1000 -- names that are forgotten in one call
local now = text(MICROSECONDS)
local answer, declared = { now }, {}
redis.call("ZREM", periodic, "") -- needs no memory: a full server lets the next writes pass after it
for _, each in ipairs(names) do
  local limit = tonumber(each.limit)
  redis.call("ZADD", periodic, "NX", now, each.name)
  if limit > 0 and tonumber(redis.call("ZSCORE", periodic, each.name)) > limit then
    redis.call("ZADD", periodic, now, each.name)
  end
  answer[#answer + 1] = redis.call("ZSCORE", periodic, each.name)
  declared[each.name] = true
end

-- A name that nobody declares is kept for so many microseconds after its last tick.
local before = text(MICROSECONDS - kept)
for _, name in ipairs(redis.call("ZRANGEBYSCORE", periodic, "-inf", before, "LIMIT", 0, MOST)) do
  if not declared[name] then redis.call("ZREM", periodic, name) end
end
return answer
