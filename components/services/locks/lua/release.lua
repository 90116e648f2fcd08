-- Release a lock that the caller holds, and wake who waits first. Repeated within two minutes, it says so again.
-- KEYS[1] lock      STRING token of the holder
-- KEYS[2] state     HASH figures, and who holds it by a token of their own
-- KEYS[3] queue     ZSET waiter by arrival
-- KEYS[4] beats     ZSET waiter by the microsecond until which it counts as alive
-- KEYS[5] held      ZSET lock by the millisecond its time ends; below zero the fences, as in acquire.lua
-- KEYS[6] wake      LIST, prefix to the asker of a waiter
-- KEYS[7] released  SET of fences that were released; prefix to the first digits of these fences
-- KEYS[8] let_go    STRING, prefix to a token that was released by a caller who did not know its fence
-- ARGV[1] token
-- ARGV[2] asker: names the acquisition; the token itself, unless the caller chose that
-- ARGV[3] its fence; 0 if that is not known
-- ARGV[4] "released"; "evicted" if another than the holder does it; "left" if a waiter gives up
-- Returns 1 if it is released, or was by this holder; 0 if it was lost before
local lock, state, queue, beats, held = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local wake, released, let_go = KEYS[6], KEYS[7], KEYS[8]
local token, asker, fence, reason = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local of_its_time = released .. string.sub(fence, 1, -9) -- fences of a hundred seconds
local DAY, WOKEN, REPEATED = 86400000, 2000, 120000 -- milliseconds

local is_mine = redis.call("GET", lock) == token
  and (asker == token or redis.call("HGET", state, "by") == asker)
if is_mine and reason == "evicted" then
  local kept = redis.call("ZSCORE", held, "\255" .. lock)
  is_mine = not kept or -kept == tonumber(fence)
end
if is_mine then
  redis.call("DEL", lock) -- first: a full server lets a script begin with what frees memory, and then do the rest
  redis.call("ZREM", held, lock, "\255" .. lock)
  if redis.call("HDEL", state, "by", "extension", "ended") > 0 then redis.call("PEXPIRE", state, DAY) end
  if reason == "evicted" then
    redis.call("HINCRBY", state, "forced", 1)
    redis.call("HSET", state, "evicted", fence, "fence", fence)
    redis.call("HSETNX", state, "acquired", 1)
    redis.call("PEXPIRE", state, DAY)
  elseif fence == "0" then
    redis.call("SET", let_go .. token, 1, "PX", REPEATED)
  else
    redis.call("SADD", of_its_time, fence)
    redis.call("PEXPIRE", of_its_time, REPEATED)
  end
end
if reason == "left" then
  for _, zset in ipairs({ queue, beats }) do redis.call("ZREM", zset, asker) end
  redis.call("DEL", wake .. asker)
end

local head = (is_mine or redis.call("EXISTS", lock) == 0) and redis.call("ZRANGE", queue, 0, 0)[1]
if head then
  local time = redis.call("TIME")
  redis.call("DEL", wake .. asker) -- first, as above
  local now = string.format("%.0f", time[1] * 1000000 + time[2])
  for _, dead in ipairs(redis.call("ZRANGEBYSCORE", beats, "-inf", now)) do
    for _, zset in ipairs({ queue, beats }) do redis.call("ZREM", zset, dead) end
  end
  head = redis.call("ZRANGE", queue, 0, 0)[1]
end
if head and redis.call("LLEN", wake .. head) == 0 then
  redis.call("RPUSH", wake .. head, "1")
  redis.call("PEXPIRE", wake .. head, WOKEN)
end

if is_mine then return 1 end
if reason == "evicted" then return redis.call("HGET", state, "evicted") == fence and 1 or 0 end
if fence == "0" then return redis.call("EXISTS", let_go .. token) end
return redis.call("SISMEMBER", of_its_time, fence)
