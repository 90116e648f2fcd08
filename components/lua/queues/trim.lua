-- Let go of what a queue kept long enough: dead tasks by age and number, the list of successful ones by age.
-- KEYS[1] tasks       HASH id -> record
-- KEYS[2] runs        HASH id -> run record
-- KEYS[3] errors      HASH id -> JSON
-- KEYS[4] progress    HASH id -> JSON
-- KEYS[5] dead        ZSET
-- KEYS[6] successful  ZSET
-- ARGV[1] how long dead tasks are kept, milliseconds
-- ARGV[2] how many of them are kept
-- ARGV[3] how long successful tasks are listed, milliseconds
-- ARGV[4] how many tasks may go in this call
-- Returns how many dead tasks went
local tasks, runs, errors, progress, dead, successful = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local dead_ttl, dead_limit, listed_ttl, most = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])

local time = redis.call("TIME")
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)

redis.call("ZREMRANGEBYSCORE", successful, "-inf", now_ms - listed_ttl)
local too_old = redis.call("ZCOUNT", dead, "-inf", now_ms - dead_ttl)
local too_many = redis.call("ZCARD", dead) - dead_limit
local go = math.min(math.max(too_old, too_many), most)
if go < 1 then return 0 end

local ids = redis.call("ZRANGE", dead, 0, go - 1)
redis.call("ZREM", dead, unpack(ids))
for _, hash in ipairs({ tasks, runs, errors, progress }) do redis.call("HDEL", hash, unpack(ids)) end
return go
