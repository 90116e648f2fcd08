-- Make delayed tasks of a queue due, and wake a worker for them. A repeated call changes nothing.
-- KEYS    delayed wake
-- ARGV    ids...
-- USES    time rouse
-- RETURNS how many of them are due
local due = 0
for _, id in ipairs(ids) do
  local at = tonumber(redis.call("ZSCORE", delayed, id))
  if at and at > MICROSECONDS then redis.call("ZADD", delayed, text(MICROSECONDS), id) end
  if at then due = due + 1 end
end
if due > 0 then rouse(wake) end
return due
