-- Put one token into a list on which somebody may wait. A repeated call changes nothing.
-- KEYS    wake
-- ARGV    life
-- RETURNS 1
redis.call("DEL", wake) -- needs no memory: a full server lets the next writes pass after it
redis.call("RPUSH", wake, "1")
if tonumber(life) > 0 then redis.call("PEXPIRE", wake, life) end -- milliseconds; 0 until it is taken
return 1
