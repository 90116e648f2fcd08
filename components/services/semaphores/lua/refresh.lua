-- Restart the lease of a permit, unless it has ended. A repeated call does no more.
-- KEYS    holders ended
-- ARGV    permit lease
-- USES    time
-- RETURNS "refreshed"; or the name of the call that ended the permit; or "" if its lease ran out
if tonumber(redis.call("ZSCORE", holders, permit) or 0) <= MICROSECONDS then
  return redis.call("GET", ended .. ":" .. permit) or ""
end
-- For a month, as when it was granted. First: a full server runs a script whose first write needs no memory.
redis.call("PEXPIRE", holders, 30 * 86400000)
redis.call("ZADD", holders, "XX", text(MICROSECONDS + lease), permit)
return "refreshed"
