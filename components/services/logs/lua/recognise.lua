-- Find what is known of a file by how it begins, or note that it is new. Repeated, it says the same.
-- KEYS[1] files  HASH fingerprint -> position, start and id of its last chunk, lines, mark, state, size, name
-- KEYS[2] heads  SET of lengths that fingerprints were made of
-- KEYS[3] seen   ZSET fingerprint by the millisecond at which the file was last looked at or copied
-- ARGV[1] how many lengths the caller knows
-- ARGV[2] the length of the last fingerprint
-- ARGV[3] name of the file
-- ARGV[4] how many files may be known
-- ARGV[5..] fingerprints, of the longest head first but for the last, under which a new file is noted
-- Returns fingerprint and record; nothing if other lengths came up meanwhile; "full" if it is new and there are
--         as many already
local files, heads, seen = KEYS[1], KEYS[2], KEYS[3]
local known, length, name, most = tonumber(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4])
local NEW = "0 0 - 0 - new 0 "

local time = redis.call("TIME")
local now = string.format("%.0f", time[1] * 1000 + math.floor(time[2] / 1000))
for at = 5, #ARGV do
  local record = redis.call("HGET", files, ARGV[at])
  if record then
    redis.call("ZADD", seen, now, ARGV[at])
    return { ARGV[at], record }
  end
end
if redis.call("SCARD", heads) ~= known then return {} end
if redis.call("HLEN", files) >= most then return { "full" } end
local own = ARGV[#ARGV]
redis.call("SADD", heads, length)
redis.call("HSET", files, own, NEW .. name)
redis.call("ZADD", seen, now, own)
return { own, NEW .. name }
