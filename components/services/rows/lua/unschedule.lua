-- Remove rows of a bucket from the schedule, with their values and claims. A repeated call changes nothing.
-- KEYS    schedule delays failures row claim counts
-- ARGV    members...
-- USES    counts
-- RETURNS 1
for _, member in ipairs(members) do
  if redis.call("ZREM", schedule, member) == 1 then count(member, "", -1) end
  if redis.call("HDEL", failures, member) == 1 then count(member, ":failing", -1) end
  redis.call("HDEL", delays, member)
  redis.call("UNLINK", row .. ":" .. member, claim .. ":" .. member)
end
return 1
