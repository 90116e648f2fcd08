-- USES    entry
-- Return an entry in the form that Python reads. A damaged entry may lack fields.
local function plain(entry)
  local fields, found = entry[2], { entry[1] }
  for at = SENDER, BODY, 2 do table.insert(found, fields[at] or "") end
  return found
end

-- Return entries in the form that Python reads, oldest first, and 1 if *most* or the limit on the bytes of bodies cut
-- some off. The first entry is always returned.
local function shown(entries, is_newest_first, most, most_bytes)
  local kept, bytes = {}, 0
  for at, entry in ipairs(entries) do
    bytes = bytes + #(entry[2][BODY] or "")
    if at > most or (at > 1 and bytes > most_bytes) then return kept, 1 end
    table.insert(kept, is_newest_first and 1 or at, plain(entry))
  end
  return kept, 0
end
