-- Put a contact before all others, and drop the oldest beyond the limit. Repeated, it changes nothing.
-- KEYS[1] contacts  ZSET contact by the microsecond of its last touch
-- KEYS[2] labels    HASH contact -> the call that touched it, \1, its label or nothing
-- ARGV[1] contact
-- ARGV[2] its label; "" for that which it has
-- ARGV[3] how many may stay
-- ARGV[4] name of this call, unlike others
-- Returns 1 if it has a label, else 0
local contacts, labels = KEYS[1], KEYS[2]
local contact, label, limit, call = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local YEAR = 366 * 86400000 -- milliseconds

local time = redis.call("TIME")
local known = redis.call("HGET", labels, contact)
local before, shown = string.match(known or "\1", "^([^\1]*)\1(.*)$")
if label == "" then label = shown end
local is_named = label ~= "" and 1 or 0
if before == call then return is_named end
-- A clock that was set back, or two touches in one microsecond, do not change who was last.
local last = tonumber(redis.call("ZREVRANGE", contacts, 0, 0, "WITHSCORES")[2] or 0)
redis.call("ZADD", contacts, string.format("%.0f", math.max(last + 1, time[1] * 1000000 + time[2])), contact)
redis.call("HSET", labels, contact, call .. "\1" .. label)
for _, old in ipairs(redis.call("ZRANGE", contacts, 0, -limit - 1)) do
  redis.call("ZREM", contacts, old)
  redis.call("HDEL", labels, old)
end
for _, key in ipairs({ contacts, labels }) do redis.call("PEXPIRE", key, YEAR) end
return is_named
