-- Read entries of a book by their ids, or those of the highest rank. Reads only.
-- KEYS[1] rows   HASH part of a digest of the id -> rows, each after \2
-- KEYS[2] ranks  ZSET id by the logarithm of its selections, as they decay
-- ARGV[1] how many of the highest rank
-- ARGV[2..] ids, if not these
-- Returns for each that is there: id, label, weight as text
local rows, ranks = KEYS[1], KEYS[2]
local best = tonumber(ARGV[1])
local HALF_LIFE = 30 * 86400 -- seconds

local time = redis.call("TIME")
local now = (time[1] + time[2] / 1000000) / HALF_LIFE
local ids, answer = best > 0 and redis.call("ZREVRANGE", ranks, 0, best - 1) or { unpack(ARGV, 2) }, {}
for _, id in ipairs(ids) do
  local packed = redis.call("HGET", rows, string.sub(redis.sha1hex(id), 1, 4)) or ""
  local _, past = string.find(packed, "\2" .. id .. "\1", 1, true)
  local score = redis.call("ZSCORE", ranks, id)
  if past then
    local label = string.sub(packed, past + 1, (string.find(packed, "\1", past + 1, true) or #packed + 1) - 1)
    answer[#answer + 1] = { id, label, string.format("%.17g", score and 2 ^ (score - now) or 0) }
  end
end
return answer
