-- Remove a version of a table, and the table if that version is current. A repeated call changes nothing.
-- KEYS    current manifest part
-- ARGV    version
-- USES    current
-- RETURNS 1
local is_current, count = current_version()
if is_current == version then
  for number = 0, count - 1 do redis.call("UNLINK", part_of(version, number)) end
  redis.call("UNLINK", manifest .. version)
  redis.call("DEL", current)
end
return 1
