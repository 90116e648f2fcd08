-- Make rows of a bucket due now. They can be read until they are loaded. A repeated call changes nothing.
-- KEYS    schedule claim
-- ARGV    members...
-- USES    time claim
-- RETURNS for each member 1 if it is on the schedule, else 0
local answer = {}
for at, member in ipairs(members) do
  -- A running load may have read the row before this, but is still stored. A claimed row is due when the claim ends.
  -- A score two microseconds lower marks that it is due as soon as that load is over.
  local ends = tonumber(claim_of(member).ends)
  local is_there = redis.call("ZSCORE", schedule, member)
  if is_there then
    redis.call("ZADD", schedule, "LT", text(ends and ends - 2 or MICROSECONDS), member)
  end
  answer[at] = is_there and 1 or 0
end
return answer
