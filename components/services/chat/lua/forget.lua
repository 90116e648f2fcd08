-- Take hints out of an inbox whose chats have denied them, and note that these chats are in the past. Hints that are
-- *young*, in milliseconds, stay: somebody may be joining.
-- KEYS    hints past
-- ARGV    young ids...
-- USES    time
-- RETURNS how many chats are in the past
-- A script that begins with what needs no memory is taken by a server that is full; this changes nothing.
redis.call("PERSIST", hints)
for _, id in ipairs(ids) do
  local hinted_at = redis.call("ZSCORE", hints, id)
  if hinted_at and hinted_at + young <= NOW then redis.call("ZREM", hints, id) end
  -- The score differs each time.
  redis.call("ZADD", past, math.max(NOW, (redis.call("ZSCORE", past, id) or 0) + 1), id)
end
return redis.call("ZCARD", past)
