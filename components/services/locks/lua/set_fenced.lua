-- Write a value, unless it was written with a newer fence before. A repeated call writes the same.
-- KEYS    value fence
-- ARGV    writer content ttl keep
-- USES    newer
-- RETURNS the newer fence, or nil if the value was written

-- *writer* is a fence of 19 digits, *ttl* the milliseconds until the value expires (0 for never), and *keep* the
-- milliseconds for which the fence outlives the value.
local newer = newer_fence()
if newer then return newer end
if tonumber(ttl) > 0 then
  redis.call("SET", fence, writer, "PX", ttl + keep)
  redis.call("SET", value, content, "PX", ttl)
else
  redis.call("SET", fence, writer)
  redis.call("SET", value, content)
end
return false
