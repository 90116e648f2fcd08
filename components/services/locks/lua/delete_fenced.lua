-- Delete a value, unless it was written with a newer fence before. A repeated call changes nothing.
-- KEYS    value fence
-- ARGV    writer keep
-- USES    newer
-- RETURNS the newer fence, or nil if there is no value any more
local newer = newer_fence()
if newer then return newer end
redis.call("DEL", value) -- first: a full server runs a script that begins by freeing memory
redis.call("SET", fence, writer, "PX", keep) -- an older holder may still come
return false
