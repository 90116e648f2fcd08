-- Let rows of one bucket be due now, without taking anything from who reads or loads them. Idempotent by nature.
-- KEYS[1] schedule  ZSET member by the microsecond it is due
-- KEYS[2] claim     STRING, prefix to a member: microseconds of the claim and of its end, token
-- ARGV[1..] members
-- Returns of each member 1 if it is on the schedule, 0 if not
local schedule, claim = KEYS[1], KEYS[2]

local time = redis.call("TIME")
local now = time[1] * 1000000 + time[2]
local answer = {}
for at = 1, #ARGV do
  local member, due = ARGV[at], now
  -- A load that is under way may have read before this, and is good nevertheless. A row that is claimed is due when
  -- the claim ends; two microseconds less are the sign that it is due as soon as that load is over.
  local ends = string.match(redis.call("GET", claim .. member) or "", "^%d+ (%d+)")
  if ends then due = ends - 2 end
  local is_there = redis.call("ZSCORE", schedule, member)
  if is_there then redis.call("ZADD", schedule, "LT", string.format("%.0f", due), member) end
  answer[at] = is_there and 1 or 0
end
return answer
