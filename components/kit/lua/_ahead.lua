-- USES    time
-- Members of a sorted set whose score is an instant further ahead than it could ever be were given it by a clock that
-- had jumped ahead. Give them the latest that is possible. Return how many there were, at most a hundred in a call.
local function bring_back(instants, latest)
  local ahead = redis.call("ZREVRANGEBYSCORE", instants, "+inf", "(" .. text(latest), "LIMIT", 0, 100)
  for _, member in ipairs(ahead) do redis.call("ZADD", instants, text(latest), member) end
  return #ahead
end
