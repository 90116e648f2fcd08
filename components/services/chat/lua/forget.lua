-- Move hints that chats have denied from the hints of an inbox to its past. Hints younger than *young* milliseconds
-- stay, because the person may be about to enter.
-- KEYS    hints past
-- ARGV    young ids...
-- USES    time
-- RETURNS how many chats are in the past
-- This changes nothing, but a server that is out of memory runs a script whose first write needs no memory.
redis.call("PERSIST", hints)
for _, id in ipairs(ids) do
  local hinted_at = redis.call("ZSCORE", hints, id)
  if hinted_at and hinted_at + young <= NOW then redis.call("ZREM", hints, id) end
  -- Each write gets a different score, so that a changed entry is recognised.
  redis.call("ZADD", past, math.max(NOW, (redis.call("ZSCORE", past, id) or 0) + 1), id)
end
return redis.call("ZCARD", past)
