-- Give rows of one bucket back that were claimed and not loaded. Idempotent by nature.
-- KEYS[1] schedule  ZSET member by the microsecond it is due
-- KEYS[2] claim     STRING, prefix to a member: microseconds of the claim and of its end, token
-- ARGV[1] token of the claim
-- ARGV[2] microseconds until they are due; those that were not due when they were claimed stay as they are
-- ARGV[3..] members
-- Returns 1
local schedule, claim = KEYS[1], KEYS[2]
local token, pause = ARGV[1], ARGV[2]

local time = redis.call("TIME")
local due = string.format("%.0f", time[1] * 1000000 + time[2] + pause)
for at = 3, #ARGV do
  local member = ARGV[at]
  local ends, owner = string.match(redis.call("GET", claim .. member) or "", "^%d+ (%d+) (.*)")
  if owner == token then
    redis.call("DEL", claim .. member)
    local score = tonumber(redis.call("ZSCORE", schedule, member))
    if score and score <= tonumber(ends) then redis.call("ZADD", schedule, due, member) end
  end
end
return 1
