-- Find what is known of a file by how it begins, or note that it is new. Repeated, it says the same.
-- KEYS[1] files  HASH fingerprint -> position, start and id of its last chunk, lines, mark, state, size, name
-- KEYS[2] heads  SET of lengths that fingerprints were made of
-- KEYS[3] seen   ZSET fingerprint by the millisecond at which the file was last looked at or copied
-- ARGV[1] how many lengths the caller knows
-- ARGV[2] the length of the last fingerprint
-- ARGV[3] name of the file
-- ARGV[4..] fingerprints, of the longest head first but for the last, under which a new file is noted
-- Returns fingerprint and record; nothing if other lengths came up meanwhile
local files, heads, seen = KEYS[1], KEYS[2], KEYS[3]
local known, length, name = tonumber(ARGV[1]), ARGV[2], ARGV[3]
local NEW = "0 0 - 0 - new 0 "

local time = redis.call("TIME")
local now = string.format("%.0f", time[1] * 1000 + math.floor(time[2] / 1000))
for at = 4, #ARGV do
  local record = redis.call("HGET", files, ARGV[at])
  if record then
    redis.call("ZADD", seen, now, ARGV[at])
    return { ARGV[at], record }
  end
end
if redis.call("SCARD", heads) ~= known then return {} end
local own = ARGV[#ARGV]
redis.call("SADD", heads, length)
redis.call("HSET", files, own, NEW .. name)
redis.call("ZADD", seen, now, own)
return { own, NEW .. name }
