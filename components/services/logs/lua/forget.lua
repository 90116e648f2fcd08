-- Forget files that were last seen too long ago, the oldest first. Repeated, it forgets the next ones.
-- KEYS[1] files  HASH fingerprint -> record
-- KEYS[2] seen   ZSET fingerprint by the millisecond at which the file was last looked at or copied
-- ARGV[1] milliseconds since then
-- ARGV[2] how many at most
-- Returns how many
local files, seen = KEYS[1], KEYS[2]
local age, limit = tonumber(ARGV[1]), tonumber(ARGV[2])

local time = redis.call("TIME")
local before = string.format("(%.0f", time[1] * 1000 + math.floor(time[2] / 1000) - age)
local page = redis.call("ZRANGEBYSCORE", seen, "-inf", before, "LIMIT", 0, limit)
for _, print in ipairs(page) do
  redis.call("HDEL", files, print)
  redis.call("ZREM", seen, print)
end
return #page
