-- Release a lock that the caller holds, and wake who waits first. Repeated, it says so again.
-- KEYS[1] lock   STRING token of the holder
-- KEYS[2] state  HASH of fences: fence (the latest), released, evicted, lost (the latest), born; and figures
-- KEYS[3] queue  ZSET waiter by arrival
-- KEYS[4] beats  ZSET waiter by the microsecond until which it counts as alive
-- KEYS[5] held   ZSET lock by the millisecond its time ends
-- KEYS[6] wake   LIST, prefix to the token of a waiter
-- ARGV[1] token
-- ARGV[2] its fence; 0 if that is not known
-- ARGV[3] "released"; "evicted" if another than the holder does it; "left" if a waiter gives up
-- Returns 1 if it is released, or was by this holder; 0 if it was lost before
local lock, state, queue, beats, held, wake = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local token, fence, reason = ARGV[1], ARGV[2], ARGV[3]
local DAY, WOKEN = 86400000, 2000 -- milliseconds

local is_mine = redis.call("GET", lock) == token
local noted = reason == "evicted" and reason or "released"
if is_mine then
  local forgotten_in = redis.call("PTTL", state)
  if fence == "0" then fence = redis.call("HGET", state, "fence") or "0" end
  if forgotten_in ~= -2 then redis.call("HSET", state, noted, fence) end
  if forgotten_in == -1 then redis.call("PEXPIRE", state, DAY) end
  if reason == "evicted" then redis.call("HINCRBY", state, "forced", 1) end
  redis.call("DEL", lock)
  redis.call("ZREM", held, lock)
end
if reason == "left" then
  for _, key in ipairs({ queue, beats }) do redis.call("ZREM", key, token) end
  redis.call("DEL", wake .. token)
end

local head = (is_mine or redis.call("EXISTS", lock) == 0) and redis.call("ZRANGE", queue, 0, 0)[1]
local now = head and redis.call("TIME")
while head and (redis.call("ZSCORE", beats, head) or 0) - now[1] * 1000000 <= tonumber(now[2]) do
  for _, key in ipairs({ queue, beats }) do redis.call("ZREM", key, head) end -- it has died
  head = redis.call("ZRANGE", queue, 0, 0)[1]
end
if head and redis.call("LLEN", wake .. head) == 0 then
  redis.call("RPUSH", wake .. head, "1")
  redis.call("PEXPIRE", wake .. head, WOKEN)
end
if is_mine then return 1 end

-- Others may have held it since. All who held it have released it, but for those that are noted.
local last, ended, lost, born = unpack(redis.call("HMGET", state, "fence", noted, "lost", "born"))
if fence == last then return ended == fence and 1 or 0 end
local is_known = reason == "released" and last and fence < last and fence >= (born or last)
return is_known and not string.find(lost or "", fence, 1, true) and 1 or 0
