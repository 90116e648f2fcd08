-- Write a part of a table: that of a current version stays, any other expires. A repeated call changes nothing.
-- KEYS    part
-- ARGV    piece bytes
-- RETURNS 1
local HOUR = 3600000 -- milliseconds
local key = part .. piece
if redis.call("PTTL", key) == -1 then
  redis.call("SET", key, bytes)
else
  redis.call("SET", key, bytes, "PX", HOUR)
end
return 1
