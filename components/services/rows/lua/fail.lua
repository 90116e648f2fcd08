-- Note that rows of a bucket could not be loaded, and let them be due later each time. A repeated call counts once.
-- KEYS    schedule failures claim counts
-- ARGV    token first longest failed...
-- USES    time claim failure counts
-- RETURNS 1
first, longest = tonumber(first), tonumber(longest) -- microseconds until the first try again, which double; at most

local function note(member, mine, due, error)
  local before = tonumber(failure_of(member).count) or 0
  local record = write_failure({ count = text(before + 1), tried_at = text(MICROSECONDS) })
  if redis.call("HSET", failures, member, record .. " " .. error) == 1 then count(member, ":failing", 1) end
  local pause = math.min(longest, first * 2 ^ math.min(before, 50))
  if tonumber(due) < mine.ends - 1 then pause = 0 end -- refresh.lua: it is to be loaded again in any case
  redis.call("ZADD", schedule, "XX", text(MICROSECONDS + pause), member)
end

for at = 1, #failed, 2 do -- member and error, in turn
  local member = failed[at]
  local mine = claim_of(member)
  if mine.owner == token then
    redis.call("DEL", claim .. ":" .. member)
    local due = redis.call("ZSCORE", schedule, member)
    if due then note(member, mine, due, failed[at + 1]) end
  end
end
return 1
