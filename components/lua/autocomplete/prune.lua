-- Forget the ranks of ids that are not in the book. Idempotent by nature.
-- KEYS[1] rows   HASH part of a digest of the id -> rows, each after \2
-- KEYS[2] ranks  ZSET id by the logarithm of its selections, as they decay
-- ARGV[1..] ids
-- Returns how many are forgotten
local rows, ranks = KEYS[1], KEYS[2]

local gone = 0
for _, id in ipairs(ARGV) do
  local packed = redis.call("HGET", rows, string.sub(redis.sha1hex(id), 1, 4)) or ""
  if not string.find(packed, "\2" .. id .. "\1", 1, true) then gone = gone + redis.call("ZREM", ranks, id) end
end
return gone
