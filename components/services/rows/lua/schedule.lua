-- Schedule rows of a bucket to be loaded repeatedly, new ones at once. A repeated call changes nothing.
-- KEYS    schedule delays row claim counts
-- ARGV    grace only_these delayed...
-- USES    time head claim counts
-- RETURNS for each member 1 if it was on the schedule, else 0

-- A row that was valid for longer is now valid for its delay and *grace* microseconds, whether or not a daemon runs.
local function shorten(member, delay)
  local since, till = head_of(member)
  if since and since + delay + grace < tonumber(till) then
    redis.call("SETRANGE", row .. ":" .. member, #since + 2, text(since + delay + grace))
  end
end

local function enter(member, delay)
  redis.call("HSET", delays, member, delay)
  redis.call("ZADD", schedule, text(MICROSECONDS), member)
  count(member, "", 1)
  shorten(member, delay)
end

local function change(member, delay)
  local ends = tonumber(claim_of(member).ends)
  redis.call("HSET", delays, member, delay)
  -- Its loader uses the new delay, and recognises by the missing microsecond that it was scheduled meanwhile.
  redis.call("ZADD", schedule, "LT", text(ends and ends - 1 or MICROSECONDS + delay), member)
  shorten(member, delay)
end

local answer = {}
for at = 1, #delayed, 2 do -- member and microseconds, in turn
  local member, delay = delayed[at], delayed[at + 1]
  local was_there = redis.call("ZSCORE", schedule, member)
  if was_there then
    change(member, delay)
  elseif only_these == "0" then
    enter(member, delay)
  end
  answer[#answer + 1] = was_there and 1 or 0
end
return answer
