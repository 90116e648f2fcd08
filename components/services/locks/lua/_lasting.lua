-- USES    index
-- Keep the index until a day after the lock's time, or for ever if a lock in it has no end.
local function keep_index(ttl)
  local stays = redis.call("PTTL", held)
  if stays >= ttl + ONE_DAY then return end
  if stays >= 0 or redis.call("ZRANGE", held, -1, -1, "WITHSCORES")[2] ~= "inf" then
    redis.call("PEXPIRE", held, ttl + ONE_DAY + 3600000) -- an hour more, so that the next call need not extend it
  end
end
