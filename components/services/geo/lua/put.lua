-- Write a part of a table. That of a current version stays, any other expires. Repeated, it changes nothing.
-- KEYS[1] part  STRING compressed bytes
-- ARGV[1] bytes
-- Returns 1
local part = KEYS[1]
local bytes = ARGV[1]
local HOUR = 3600000 -- milliseconds

if redis.call("PTTL", part) == -1 then
  redis.call("SET", part, bytes)
else
  redis.call("SET", part, bytes, "PX", HOUR)
end
return 1
