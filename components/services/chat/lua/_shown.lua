-- USES    entry
-- Return an entry as Python reads it. A damaged one may lack fields.
local function plain(entry)
  local fields, found = entry[2], { entry[1] }
  for at = SENDER, BODY, 2 do table.insert(found, fields[at] or "") end
  return found
end

-- Return entries as Python reads them, oldest first, and 1 if there are more of them than *most*, or than so many
-- bytes of bodies. The first is always returned.
local function shown(entries, is_newest_first, most, most_bytes)
  local kept, bytes = {}, 0
  for at, entry in ipairs(entries) do
    bytes = bytes + #(entry[2][BODY] or "")
    if at > most or (at > 1 and bytes > most_bytes) then return kept, 1 end
    table.insert(kept, is_newest_first and 1 or at, plain(entry))
  end
  return kept, 0
end
