-- Drop rows of a bucket that have changed. A repeated call changes nothing.
-- Claims on them are removed as well: loads that began before this are not stored.
-- KEYS    schedule row claim
-- ARGV    members...
-- USES    time
-- RETURNS 1
for _, member in ipairs(members) do
  redis.call("UNLINK", row .. ":" .. member, claim .. ":" .. member)
  if redis.call("ZSCORE", schedule, member) then redis.call("ZADD", schedule, "LT", text(MICROSECONDS), member) end
end
return 1
