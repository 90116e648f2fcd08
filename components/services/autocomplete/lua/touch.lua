-- Put a contact before all others, and drop the oldest beyond the limit. A repeated call changes nothing.
-- KEYS    contacts labels
-- ARGV    contact label limit call
-- USES    time label
-- RETURNS 1 if the contact has a label, else 0
local YEAR = 366 * 86400000 -- milliseconds
local before, known = touched(contact)
if label == "" then label = known or "" end
local is_named = label ~= "" and 1 or 0
if before == call then return is_named end

-- The last touch stays last, even if the clock is set back or two touches share a microsecond.
local last = tonumber(redis.call("ZREVRANGE", contacts, 0, 0, "WITHSCORES")[2] or 0)
redis.call("ZADD", contacts, text(math.max(last + 1, MICROSECONDS)), contact)
redis.call("HSET", labels, contact, call .. "\1" .. label)
for _, old in ipairs(redis.call("ZRANGE", contacts, 0, -limit - 1)) do
  redis.call("ZREM", contacts, old)
  redis.call("HDEL", labels, old)
end
for _, key in ipairs({ contacts, labels }) do redis.call("PEXPIRE", key, YEAR) end
return is_named
