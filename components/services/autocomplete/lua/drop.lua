-- Remove a contact, or all contacts if none is named. A repeated call returns the same and changes nothing.
-- KEYS    contacts labels calls
-- ARGV    contact call
-- USES    answer
-- RETURNS how many were there
local before = answer_before()
if before then return tonumber(before) end
if contact == "" then
  local count = redis.call("ZCARD", contacts)
  redis.call("DEL", contacts, labels)
  return answer(count)
end
redis.call("HDEL", labels, contact)
return answer(redis.call("ZREM", contacts, contact))
