-- Set the expiry of a key of counters, or remove the key if it does not belong to counters. A repeated call changes
-- nothing.
-- KEYS    key
-- ARGV    kind latest longest kept
-- USES    time
-- RETURNS "removed", "mended" or "right"
latest, longest = tonumber(latest), tonumber(longest) -- the second of its end at most, nil for *longest* from now
kept = tonumber(kept) -- for a ZSET, the microseconds after which an entry goes by its score; else nil

local there = redis.call("TYPE", key).ok
if there == "none" then return "right" end
if there ~= kind then -- *kind* is "" if no type is right
  redis.call("UNLINK", key)
  return "removed"
end
local now, outcome = math.floor(MICROSECONDS / 1000000), "right"
if kept and redis.call("ZREMRANGEBYSCORE", key, "-inf", text(now * 1000000 - kept)) > 0 then outcome = "mended" end
local ends, left = latest or now + longest, redis.call("TTL", key)
if left == -1 or now + left > ends then
  redis.call("EXPIREAT", key, ends)
  outcome = ends <= now and "removed" or "mended"
end
return outcome
