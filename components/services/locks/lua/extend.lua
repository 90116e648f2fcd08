-- Give a lock that the caller holds another time to live. A repeated call adds time once.
-- KEYS    lock state held
-- ARGV    token asker milliseconds request how
-- USES    time holder index lasting
-- RETURNS the milliseconds left; 0 if this request ended it; -1 if the caller does not hold it, or it has no end

-- *how* is "adds" if the milliseconds are added to those left, "replaces", or "anew", also for a lock without an end.
-- With none left, its time is over. *request* names the request if repeating it would do more, else it is "".
local mine = is_mine(redis.call("GET", lock))
local left = mine and redis.call("PTTL", lock) or -1
if not mine or left < 0 and how ~= "anew" then
  return request ~= "" and redis.call("HGET", state, "ended") == request and 0 or -1
end

if request ~= "" and redis.call("HGET", state, "extension") == request then return left end
local ttl = math.max(how == "adds" and milliseconds + left or tonumber(milliseconds), 0)
redis.call("PEXPIRE", lock, ttl) -- first: a full server runs a script whose first write needs no memory
if request ~= "" then redis.call("HSET", state, ttl > 0 and "extension" or "ended", request) end
redis.call("PEXPIRE", state, ttl + ONE_DAY)
redis.call("ZADD", held, text(NOW + ttl), lock)
keep_index(ttl)
return ttl
