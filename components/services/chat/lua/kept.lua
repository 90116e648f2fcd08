-- Tell in which chats of a bucket something may be left that was sent before an instant. Reads only. The keys are
-- what those of the chats begin with; *asked* is the id of a chat and the millisecond, by turns.
-- KEYS    chat messages
-- ARGV    asked...
-- USES    entry
-- RETURNS per chat: 1 if something may be left, 0 if nothing is
local found = {}
for at = 1, #asked, 2 do
  local id, before = asked[at], tonumber(asked[at + 1])
  local is_there = redis.call("HEXISTS", chat .. id, "created_at") == 1
  local first = is_there and redis.call("XRANGE", messages .. id, "-", "+", "COUNT", 1)[1]
  found[#found + 1] = first and (tonumber(first[2][AT]) or 0) <= before and 1 or 0
end
return found
