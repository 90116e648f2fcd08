-- Erase a mailbox and all that is known of it. Idempotent by nature.
-- KEYS[1] mailbox   HASH counters
-- KEYS[2] messages  STREAM <id>-0 -> message
-- KEYS[3] handed    ZSET "<id> <pull>" by id
-- KEYS[4] dropped   ZSET id by id
-- KEYS[5] sent      HASH, prefix to ":" and a day, of two days
-- KEYS[6] blocked   HASH sender whose mail is refused -> since when
-- KEYS[7] names     ZSET name by the day of its last use
-- ARGV[1] name of the mailbox
-- Returns 1
local mailbox, messages, handed, dropped = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local sent, blocked, names = KEYS[5], KEYS[6], KEYS[7]
local name = ARGV[1]

local time = redis.call("TIME")
local day = math.floor(time[1] / 86400)
for ago = 0, 2 do redis.call("DEL", sent .. ":" .. day - ago) end
redis.call("DEL", mailbox, messages, handed, dropped, blocked)
redis.call("ZREM", names, name)
return 1
