-- Remove a version of a table, and with it the table if that version is current. Repeated, it changes nothing.
-- KEYS[1] current   HASH version, parts, imported_at
-- KEYS[2] manifest  STRING, prefix to a version: JSON
-- KEYS[3] part      STRING, prefix to a version, ":", number: compressed bytes
-- ARGV[1] version
-- Returns 1
local current, manifest, part = KEYS[1], KEYS[2], KEYS[3]
local version = ARGV[1]

local is_current, parts = unpack(redis.call("HMGET", current, "version", "parts"))
if is_current == version then
  for number = 0, parts - 1 do redis.call("UNLINK", part .. version .. ":" .. number) end
  redis.call("UNLINK", manifest .. version)
  redis.call("DEL", current)
end
return 1
