-- Let the first parked task be due, and wake a worker for it. Repeated by one caller, it is one task.
-- KEYS[1] parked   ZSET "id queue" by their place among the ready
-- KEYS[2] asked    STRING, the answer to this caller
-- KEYS[3] delayed  ZSET, prefix to a queue
-- KEYS[4] wake     LIST, prefix to a queue
-- ARGV[1] microseconds until it is due; 0 is at once
-- Returns 1 if there was one
local parked, asked, delayed, wake = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local delay = tonumber(ARGV[1])
local MOST, REPEATED = 100, 60000 -- entries that are out of date, in one call; milliseconds

local said = redis.call("GET", asked)
if said then return tonumber(said) end
if redis.call("EXISTS", parked) == 0 then return 0 end

local time, found = redis.call("TIME"), 0
for _ = 1, MOST do
  local id, queue = string.match(redis.call("ZPOPMIN", parked)[1] or "", "^(%S+) (.*)$")
  if not id then break end
  if redis.call("ZSCORE", delayed .. queue, id) then -- else it was started, cancelled or deleted meanwhile
    redis.call("ZADD", delayed .. queue, string.format("%.0f", time[1] * 1000000 + time[2] + delay), id)
    if redis.call("LLEN", wake .. queue) == 0 then redis.call("RPUSH", wake .. queue, "1") end
    found = 1
    break
  end
end
redis.call("SET", asked, found, "PX", REPEATED)
return found
