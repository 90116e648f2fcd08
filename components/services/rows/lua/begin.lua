-- Claim rows of a bucket that a reader missed, unless they are stored or claimed. A repeated call returns the same.
-- KEYS    schedule row claim
-- ARGV    token lease shape oldest members...
-- USES    time head claim lease
-- RETURNS the microsecond of the claim; for each member "load", "wait" or "there"
oldest = tonumber(oldest) -- microseconds since the load began; nil if any age will do

-- What begins later than now was written by a clock that had jumped ahead, and counts as none.
local function is_current(since, till)
  return (tonumber(since) or math.huge) <= MICROSECONDS and tonumber(till) > MICROSECONDS
end

local function is_there(member)
  local since, till, its_shape = head_of(member)
  return since and its_shape == shape and is_current(since, till)
    and (not oldest or MICROSECONDS - since <= oldest)
end

local function take(member, before)
  local mine, is_scheduled = claim_for(length_after(before)), redis.call("ZSCORE", schedule, member)
  -- A server that is out of memory refuses a script whose first write needs memory. This write needs none and changes
  -- nothing: it neither moves rows on the schedule nor adds others.
  if is_scheduled then redis.call("ZREM", schedule, "") end
  redis.call("SET", claim .. ":" .. member, mine.text, "PX", mine.kept)
  if is_scheduled then redis.call("ZADD", schedule, "GT", mine.ends, member) end
end

local answer = { BEGUN }
for at, member in ipairs(members) do
  local before, said = claim_of(member), "load"
  if before.owner == token then
    answer[1] = before.since -- a repeated call
  elseif is_there(member) then
    said = "there"
  elseif is_current(before.since, before.ends) then
    said = "wait"
  else
    take(member, before)
  end
  answer[at + 1] = said
end
return answer
