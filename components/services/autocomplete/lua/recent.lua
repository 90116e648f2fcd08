-- List the contacts that were touched last. Reads only.
-- KEYS[1] contacts  ZSET contact by the microsecond of its last touch
-- KEYS[2] labels    HASH contact -> the call that touched it, \1, its label or nothing
-- ARGV[1] how many
-- Returns for each, newest first: contact, label, microsecond
local contacts, labels = KEYS[1], KEYS[2]
local limit = tonumber(ARGV[1])

local found, answer = redis.call("ZREVRANGE", contacts, 0, limit - 1, "WITHSCORES"), {}
for at = 1, #found, 2 do
  local label = string.match(redis.call("HGET", labels, found[at]) or "", "\1(.*)$") or ""
  answer[#answer + 1] = { found[at], label, found[at + 1] }
end
return answer
