-- Count a call, unless that exceeds the rate. A repeated call is counted once.
-- A caller that would wait so long gets the first turn that no other has. When that comes, it is kept for some
-- microseconds: a caller that has died takes no turn from others for longer.
-- KEYS    calls places names rates made
-- ARGV    name key call caller most period patience kept rate
-- USES    time ahead
-- RETURNS 0 if the call was counted, else the microseconds to wait
calls, places = calls .. "/" .. key, places .. "/" .. key
most, period, patience = tonumber(most), tonumber(period), tonumber(patience)
local MINUTE, MONTH, TWO_DAYS = 60000, 30 * 86400000, 2 * 86400000 -- milliseconds

-- First, because a server that is out of memory runs a script only if its first write needs none. A call exactly a
-- period ago still counts.
redis.call("ZREMRANGEBYSCORE", calls, "-inf", "(" .. text(MICROSECONDS - period))
bring_back(calls, MICROSECONDS)
if redis.call("ZSCORE", calls, call) then return 0 end

-- How many callers are on their way, whose turn has come.
local early, place = "(" .. text(MICROSECONDS - kept), tonumber(redis.call("ZSCORE", places, caller) or nil)
local coming = 0
if not place or place > MICROSECONDS then
  coming = redis.call("ZCOUNT", places, early, text(MICROSECONDS))
end
local counted = redis.call("ZCARD", calls)
if counted + coming < most then
  redis.call("ZADD", calls, text(MICROSECONDS), call)
  redis.call("PEXPIRE", calls, math.ceil(period / 1000) + 1)
  redis.call("ZREM", places, caller)
  redis.call("HSET", rates, name, rate)
  redis.call("HINCRBY", made, name, 1)
  if redis.call("ZADD", names, "GT", "CH", DAY, name) == 1 then
    for _, old in ipairs(redis.call("ZRANGEBYSCORE", names, "-inf", DAY - 31)) do
      redis.call("ZREM", names, old)
      redis.call("HDEL", rates, old)
      redis.call("HDEL", made, old)
    end
    for _, key in ipairs({ names, rates, made }) do redis.call("PEXPIRE", key, MONTH + TWO_DAYS) end
  end
  return 0
end

-- Each call makes room for one when its period ends, and that one for another after a period.
local before = redis.call("ZCOUNT", places, early, place and "(" .. text(place) or "+inf")
local at = counted - most + before % most
local turn = at < 0 and MICROSECONDS or redis.call("ZRANGE", calls, at, at, "WITHSCORES")[2] + period + 1
local wait = math.max(1, turn + math.floor(before / most) * period - MICROSECONDS)
if wait > patience then
  redis.call("ZREM", places, caller)
  return wait
end
redis.call("ZREMRANGEBYSCORE", places, "-inf", text(MICROSECONDS - MINUTE * 1000))
redis.call("ZADD", places, text(MICROSECONDS + wait), caller)
local last = redis.call("ZRANGE", places, -1, -1, "WITHSCORES")[2]
redis.call("PEXPIRE", places, math.ceil((last - MICROSECONDS) / 1000) + MINUTE)
return wait
