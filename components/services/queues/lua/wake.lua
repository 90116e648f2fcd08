-- Put one token into a list on which somebody may wait. Idempotent by nature.
-- KEYS[1] wake  LIST
-- ARGV[1] how long the token counts, milliseconds; 0 until it is taken
-- Returns 1
local wake = KEYS[1]
local life = tonumber(ARGV[1])

redis.call("DEL", wake) -- needs no memory: a full server lets the next writes pass after it
redis.call("RPUSH", wake, "1")
if life > 0 then redis.call("PEXPIRE", wake, life) end
return 1
