-- Note that rows of one bucket could not be loaded: the more often, the later they are due. Repeated, it counts once.
-- KEYS[1] schedule  ZSET member by the microsecond it is due
-- KEYS[2] failures  HASH member -> count, microsecond, error
-- KEYS[3] claim     STRING, prefix to a member: microseconds of the claim and of its end, token
-- KEYS[4] counts    HASH name:failing -> how many fail
-- ARGV[1] token of the claim
-- ARGV[2] microseconds until the first try again, which double
-- ARGV[3] microseconds until a try at most
-- ARGV[4..] member and error, in turn
-- Returns 1
local schedule, failures, claim, counts = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local token, first, longest = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

local time = redis.call("TIME")
local now = time[1] * 1000000 + time[2]
for at = 4, #ARGV, 2 do
  local member = ARGV[at]
  local ends, owner = string.match(redis.call("GET", claim .. member) or "", "^%d+ (%d+) (.*)")
  if owner == token then
    redis.call("DEL", claim .. member)
    local due = redis.call("ZSCORE", schedule, member)
    if due then
      local before = tonumber(string.match(redis.call("HGET", failures, member) or "", "^%d+")) or 0
      local words = string.format("%.0f %.0f %s", before + 1, now, ARGV[at + 1])
      if redis.call("HSET", failures, member, words) == 1 then
        redis.call("HINCRBY", counts, string.match(member, "^[^:]*") .. ":failing", 1)
      end
      local pause = math.min(longest, first * 2 ^ math.min(before, 50))
      if tonumber(due) < ends - 1 then pause = 0 end -- refresh.lua: to be loaded again, whatever became of this
      redis.call("ZADD", schedule, "XX", string.format("%.0f", now + pause), member)
    end
  end
end
return 1
