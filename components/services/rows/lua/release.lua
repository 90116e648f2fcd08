-- Give back rows of a bucket that were claimed and not loaded. A repeated call changes nothing.
-- KEYS    schedule claim
-- ARGV    token pause members...
-- USES    time claim
-- RETURNS 1
local due = text(MICROSECONDS + pause) -- *pause* is in microseconds
for _, member in ipairs(members) do
  local mine = claim_of(member)
  if mine.owner == token then
    redis.call("DEL", claim .. ":" .. member)
    local score = tonumber(redis.call("ZSCORE", schedule, member))
    -- A row that was not due when it was claimed stays as it is.
    if score and score <= tonumber(mine.ends) then redis.call("ZADD", schedule, due, member) end
  end
end
return 1
