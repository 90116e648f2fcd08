-- Forget a contact, or all. Repeated, it says the same again and changes nothing.
-- KEYS[1] contacts  ZSET contact by the microsecond of its last touch
-- KEYS[2] labels    HASH contact -> the call that touched it, \1, its label or nothing
-- KEYS[3] answered  STRING what this call was answered
-- ARGV[1] contact; "" for all
-- Returns how many were there
local contacts, labels, answered = KEYS[1], KEYS[2], KEYS[3]
local contact = ARGV[1]
local MINUTE = 60000 -- milliseconds

local before = redis.call("GET", answered)
if before then return tonumber(before) end
local count
if contact == "" then
  count = redis.call("ZCARD", contacts)
  redis.call("DEL", contacts, labels)
else
  count = redis.call("ZREM", contacts, contact)
  redis.call("HDEL", labels, contact)
end
redis.call("SET", answered, count, "PX", MINUTE)
return count
