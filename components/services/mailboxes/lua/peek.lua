-- List messages without handing them out. Only reads.
-- KEYS    messages handed
-- ARGV    first limit which
-- USES    entries
-- RETURNS for each message, oldest first: id, 1 if it was handed out before, sender, millisecond, body
local answer = {}
for at, entry in ipairs(entries(which, first, limit)) do
  local id = id_of(entry)
  answer[at] = shown(entry, redis.call("ZCOUNT", handed, id, id) > 0)
end
return answer
