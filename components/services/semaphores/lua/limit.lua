-- Set a limit by hand, or reset it to what the code declares, and wake waiters. Repeated, it changes nothing.
-- KEYS    limits names queue beats wake
-- ARGV    name limit
-- USES    time waiters waking
-- RETURNS 1
-- First, because a server that is out of memory runs a script only if it begins by freeing memory.
redis.call("HDEL", limits, name)
if limit ~= "" then
  redis.call("HSET", limits, name, limit)
  redis.call("ZADD", names, "inf", name) -- it stays until the limit is reset
  redis.call("PERSIST", names)
else
  redis.call("ZADD", names, "XX", DAY, name)
end
remove_dead_waiters(MICROSECONDS)
wake_first()
return 1
