-- The index has the end of a lock's time by its key, and below zero the fences: by FENCE that of the lock's last
-- holder, until it is released, and by "" the latest of all locks of the index.
local FENCE = "\255" .. lock
local ONE_DAY, ONE_HOUR = 86400000, 3600000 -- milliseconds

-- Keep the index until a day after the lock's time, or for ever if a lock in it has no end.
local function keep_index(ttl)
  local stays = redis.call("PTTL", held)
  if stays >= ttl + ONE_DAY then return end
  if stays >= 0 or redis.call("ZRANGE", held, -1, -1, "WITHSCORES")[2] ~= "inf" then
    redis.call("PEXPIRE", held, ttl + ONE_DAY + ONE_HOUR)
  end
end
