-- List the contacts that were touched last. Only reads.
-- KEYS    contacts labels
-- ARGV    limit
-- USES    label
-- RETURNS for each, newest first: contact, label, microsecond
local found, answer = redis.call("ZREVRANGE", contacts, 0, limit - 1, "WITHSCORES"), {}
for at = 1, #found, 2 do
  local _, label = touched(found[at])
  answer[#answer + 1] = { found[at], label or "", found[at + 1] }
end
return answer
