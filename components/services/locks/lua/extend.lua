-- Change the time to live of a lock that the caller holds. A repeated call adds time once.
-- KEYS    lock state held
-- ARGV    token asker milliseconds request how
-- USES    time holder index lasting
-- RETURNS the milliseconds left; 0 if this request ended it; -1 if the caller does not hold it, or it has no end

-- *how* is "adds" to add the milliseconds to those left; "replaces" to replace them; or "anew" to replace them even
-- for a lock without an end. If none are left, the lock is over. *request* is the id of a request that must not be
-- applied twice, else "".
local mine = is_mine(redis.call("GET", lock))
local left = mine and redis.call("PTTL", lock) or -1
if not mine or left < 0 and how ~= "anew" then
  return request ~= "" and redis.call("HGET", state, "ended") == request and 0 or -1
end

if request ~= "" and redis.call("HGET", state, "extension") == request then return left end
local ttl = math.max(how == "adds" and milliseconds + left or tonumber(milliseconds), 0)
-- First, because a server that is out of memory runs a script only if its first write needs no memory.
redis.call("PEXPIRE", lock, ttl)
if request ~= "" then redis.call("HSET", state, ttl > 0 and "extension" or "ended", request) end
redis.call("PEXPIRE", state, ttl + ONE_DAY)
redis.call("ZADD", held, text(NOW + ttl), lock)
if ttl > 0 then redis.call("ZADD", held, "LT", text(-ttl), LONGEST) end
keep_index(ttl)
return ttl
