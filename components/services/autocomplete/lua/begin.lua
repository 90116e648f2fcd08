-- Begin a load beside the book; one that ran is superseded. Repeated, it changes nothing.
-- KEYS[1] loading        HASH token and count of the load that runs
-- KEYS[2] next_entries   ZSET as the book's entries
-- KEYS[3] next_rows      HASH as the book's rows
-- KEYS[4] next_selected  ZSET as the book's selected
-- KEYS[5] changed        SET ids that changed while it runs
-- KEYS[6] answered       STRING what this call was answered
-- ARGV[1] token, unlike others
-- Returns 1
local loading, next_entries, next_rows, next_selected = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local changed, answered = KEYS[5], KEYS[6]
local token = ARGV[1]
local MINUTE, HOUR = 60000, 3600000 -- milliseconds

if redis.call("GET", answered) then return 1 end
redis.call("UNLINK", loading, next_entries, next_rows, next_selected, changed)
redis.call("HSET", loading, "token", token)
redis.call("PEXPIRE", loading, HOUR)
redis.call("SET", answered, 1, "PX", MINUTE)
return 1
