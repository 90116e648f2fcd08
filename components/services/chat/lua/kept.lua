-- Return which chats of a bucket may still have messages sent before an instant. Only reads. The keys are the
-- prefixes of the keys of the chats. *asked* has the id and the millisecond for each chat.
-- KEYS    chat messages
-- ARGV    asked...
-- USES    entry
-- RETURNS for each chat: 1 if such messages may be left, else 0
local found = {}
for at = 1, #asked, 2 do
  local id, before = asked[at], tonumber(asked[at + 1])
  local is_there = redis.call("HEXISTS", chat .. id, "created_at") == 1
  local first = is_there and redis.call("XRANGE", messages .. id, "-", "+", "COUNT", 1)[1]
  found[#found + 1] = first and (tonumber(first[2][AT]) or 0) <= before and 1 or 0
end
return found
