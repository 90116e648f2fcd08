-- USES    time
-- How many waiters of `line` count as alive by `lives`, and the microseconds for which the first of them has waited.
local function waiting_in(line, lives)
  local alive = redis.call("ZCOUNT", lives, "(" .. text(MICROSECONDS), "+inf")
  if alive == 0 then return 0, 0 end
  local first = redis.call("ZRANGE", line, 0, 99, "WITHSCORES")
  for at = 1, #first, 2 do
    if (tonumber(redis.call("ZSCORE", lives, first[at])) or 0) > MICROSECONDS then
      return alive, math.max(0, MICROSECONDS - first[at + 1])
    end
  end
  return alive, 0
end
