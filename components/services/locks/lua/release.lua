-- Release a lock that the caller holds, and wake the first waiter. Repeated within two minutes, it returns the same.
-- KEYS    lock state queue beats held wake released let_go
-- ARGV    token asker fence reason
-- USES    time waiters waking holder index
-- RETURNS 1 if it is released now, or was released by this holder before; 0 if it was lost before

-- *reason* is "released"; "evicted" if somebody other than the holder releases it; or "left" if a waiter gives up.
-- *fence* is 0 if the caller does not know it.
local REPEATED = 120000 -- milliseconds
local PART = 100000000 -- microseconds: there is a key for the fences that are released in so many
local part = math.floor(MICROSECONDS / PART)
local is_known = redis.call("EXISTS", queue, state) > 0

local mine = is_mine(redis.call("GET", lock))
if mine and reason == "evicted" then
  local kept = redis.call("ZSCORE", held, FENCE)
  mine = not kept or -kept == tonumber(fence)
end
if mine then
  -- First, because a server that is out of memory runs a script only if it begins by freeing memory.
  redis.call("DEL", lock)
  redis.call("ZREM", held, lock, FENCE)
  if is_known and redis.call("HDEL", state, "by", "extension", "ended") > 0 then
    redis.call("PEXPIRE", state, ONE_DAY)
  end
  if reason == "evicted" then
    redis.call("HINCRBY", state, "forced", 1)
    redis.call("HSET", state, "evicted", fence, "fence", fence)
    redis.call("HSETNX", state, "acquired", 1)
    redis.call("PEXPIRE", state, ONE_DAY)
  elseif fence == "0" then
    redis.call("SET", let_go .. ":" .. token, 1, "PX", REPEATED)
  else
    redis.call("SADD", released .. ":" .. part, fence)
    redis.call("PEXPIRE", released .. ":" .. part, REPEATED)
  end
end
if reason == "left" then
  remove_waiter(asker)
  redis.call("DEL", wake .. ":" .. asker)
end
if is_known and (mine or redis.call("EXISTS", lock) == 0) then
  redis.call("DEL", wake .. ":" .. asker) -- first, as above
  remove_dead_waiters(MICROSECONDS)
  wake_first()
end

if mine then return 1 end
if reason == "evicted" then return redis.call("HGET", state, "evicted") == fence and 1 or 0 end
if fence == "0" then return redis.call("EXISTS", let_go .. ":" .. token) end
for ago = 0, math.ceil(REPEATED * 1000 / PART) do
  if redis.call("SISMEMBER", released .. ":" .. part - ago, fence) == 1 then return 1 end
end
return 0
