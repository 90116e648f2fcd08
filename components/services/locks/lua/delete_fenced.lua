-- Delete a value, unless it was written with a newer fence before. A repeated call changes nothing.
-- KEYS    value fence
-- ARGV    writer keep
-- USES    newer
-- RETURNS the newer fence, or nil if there is no value any more
local newer = newer_fence()
if newer then return newer end
-- First, because a server that is out of memory runs a script only if it begins by freeing memory.
redis.call("DEL", value)
redis.call("SET", fence, writer, "PX", keep) -- kept, because an older holder may still try to write
return false
