-- Restart the lease of a permit, unless it has ended. A repeated call has no further effect.
-- KEYS    holders heavy stats use ended
-- ARGV    permit lease
-- USES    time use longest
-- RETURNS "refreshed"; or the name of the call that ended the permit; or "" if its lease ran out
if tonumber(redis.call("ZSCORE", holders, permit) or 0) <= MICROSECONDS then
  return redis.call("GET", ended .. ":" .. permit) or ""
end
-- A month, as when the permit was granted. This comes first, because a server that is out of memory runs a script
-- only if its first write needs no memory.
redis.call("PEXPIRE", holders, 30 * 86400000)
redis.call("ZADD", holders, "XX", text(MICROSECONDS + lease), permit)
note_lease()
local used = count_used()
note_use(used, used, MICROSECONDS + lease)
return "refreshed"
