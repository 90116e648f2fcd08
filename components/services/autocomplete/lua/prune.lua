-- Forget the ranks of ids that are in neither the book nor the load that runs. Idempotent by nature.
-- KEYS[1] rows   HASH part of a digest of the id -> rows, each after \2
-- KEYS[2] ranks  ZSET id by the logarithm of its selections, as they decay
-- KEYS[3] next_rows  HASH as rows, of the load that runs
-- ARGV[1..] ids
-- Returns how many are forgotten
local rows, ranks, next_rows = KEYS[1], KEYS[2], KEYS[3]

local function is_in(shelves, id)
  local packed = redis.call("HGET", shelves, string.sub(redis.sha1hex(id), 1, 4)) or ""
  return string.find(packed, "\2" .. id .. "\1", 1, true)
end

local gone = 0
for _, id in ipairs(ARGV) do
  if not is_in(rows, id) and not is_in(next_rows, id) then gone = gone + redis.call("ZREM", ranks, id) end
end
return gone
