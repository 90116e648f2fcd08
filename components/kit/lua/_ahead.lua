-- USES    time
-- Members of a sorted set whose score is an instant further ahead than it could ever be were given it by a clock that
-- had jumped ahead. Give them the latest that is possible. Return how many there were, at most a thousand in a call.
-- Scores of *bound* and more are no such instants.
local function bring_back(instants, latest, bound)
  local from = bound and "(" .. text(bound) or "+inf"
  local ahead = redis.call("ZREVRANGEBYSCORE", instants, from, "(" .. text(latest), "LIMIT", 0, 1000)
  for _, member in ipairs(ahead) do redis.call("ZADD", instants, text(latest), member) end
  return #ahead
end
