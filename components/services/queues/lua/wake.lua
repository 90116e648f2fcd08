-- Put one token into a list on which a worker or caller may block. A repeated call changes nothing.
-- KEYS    wake
-- ARGV    life
-- RETURNS 1
-- This write needs no memory, so a server that is out of memory also accepts the next ones.
redis.call("DEL", wake)
redis.call("RPUSH", wake, "1")
if tonumber(life) > 0 then redis.call("PEXPIRE", wake, life) end -- milliseconds; 0 for no expiry
return 1
