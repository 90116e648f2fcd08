-- Send dead tasks again: ready now, their starts counted anew, their errors kept. Repeated, each is sent once.
-- KEYS[1] tasks    HASH id -> record
-- KEYS[2] runs     HASH id -> run record
-- KEYS[3] uniques  HASH unique key -> id
-- KEYS[4] dead     ZSET
-- KEYS[5] ready    ZSET
-- KEYS[6] wake     LIST that wakes a worker of the queue
-- KEYS[7] active   SET of queues that workers of all queues ask
-- KEYS[8] wake-all LIST that wakes workers of all queues
-- ARGV[1] the queue
-- ARGV[2..] ids
-- Returns {ids that stay dead, since another unfinished task has their unique key}, how many are not dead now
local tasks, runs, uniques = KEYS[1], KEYS[2], KEYS[3]
local dead, ready, wake, active, wake_all = KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local queue = ARGV[1]
local SPAN = 2 ^ 43 -- as in push.lua

local time = redis.call("TIME")
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)

local function rouse(list)
  if redis.call("LLEN", list) == 0 then redis.call("RPUSH", list, "1") end
end

local refused, sent = {}, 0
for at = 2, #ARGV do
  local id = ARGV[at]
  local priority, unique =
    string.match(redis.call("HGET", tasks, id) or "", "^1 %d+ %S+ (%-?%d+) %S+ %S+ (%S+)")
  if priority and redis.call("ZSCORE", dead, id) then
    local rival = redis.call("HGET", uniques, unique)
    if rival and redis.call("HEXISTS", tasks, rival) == 1 then
      refused[#refused + 1] = id
    else
      redis.call("ZREM", dead, id) -- first, since it needs no memory: a full server lets the rest pass after it
      if unique ~= "-" then redis.call("HSET", uniques, unique, id) end
      redis.call("HDEL", runs, id)
      redis.call("ZADD", ready, ((100 - priority) * 2 + 1) * SPAN + now_ms, id)
      rouse(wake)
      if redis.call("SADD", active, queue) == 1 then rouse(wake_all) end
    end
  end
  if not redis.call("ZSCORE", dead, id) and priority then sent = sent + 1 end
end
return { refused, sent }
