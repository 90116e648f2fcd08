-- Let a key of counters have an end, or be gone if it is none of theirs. Idempotent by nature.
-- KEYS[1] key  of any type
-- ARGV[1] type that it must have; "" if none is right
-- ARGV[2] UNIX second of its end, at the latest; "" for so many seconds from now as the next says
-- ARGV[3] seconds
-- ARGV[4] "" or, for a ZSET: the microseconds after which an entry goes by its score
-- Returns "removed", "mended" or "right"
local key = KEYS[1]
local kind, latest, longest, kept = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])

local there = redis.call("TYPE", key).ok
if there == "none" then return "right" end
if there ~= kind then
  redis.call("UNLINK", key)
  return "removed"
end
local time = redis.call("TIME")
local now, outcome = tonumber(time[1]), "right"
if kept and redis.call("ZREMRANGEBYSCORE", key, "-inf", string.format("%.0f", now * 1000000 - kept)) > 0 then
  outcome = "mended"
end
local ends, left = latest or now + longest, redis.call("TTL", key)
if left == -1 or now + left > ends then
  redis.call("EXPIREAT", key, ends)
  outcome = ends <= now and "removed" or "mended"
end
return outcome
