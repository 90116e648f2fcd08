-- Forget files that were last seen longer ago than *age* milliseconds. A repeated call forgets the next ones.
-- KEYS    files seen
-- ARGV    age limit
-- USES    time
-- RETURNS how many were forgotten, at most *limit*
local page = redis.call("ZRANGEBYSCORE", seen, "-inf", "(" .. text(NOW - age), "LIMIT", 0, limit)
for _, fingerprint in ipairs(page) do
  redis.call("HDEL", files, fingerprint)
  redis.call("ZREM", seen, fingerprint)
end
return #page
