-- USES    entry
-- Return an entry in the form that Python reads. A damaged entry may lack fields.
local function plain(entry)
  local fields, found = entry[2], { entry[1] }
  for at = SENDER, BODY, 2 do table.insert(found, fields[at] or "") end
  return found
end

-- Return an entry as plain() does, and how many bytes its bodies have. A reply also has the seq that it replies to
-- and, if that is after *low*, sender and body of that message.
local function with_quote(stream, low, entry)
  local found, seq = plain(entry), tonumber(entry[2][REPLY] or "")
  if not seq then return found, #found[7] end
  local quoted = seq > low and redis.call("XRANGE", stream, seq, seq)[1]
  local sender, body = quoted and quoted[2][SENDER] or "", quoted and quoted[2][BODY] or ""
  for _, word in ipairs({ seq, sender, body }) do table.insert(found, word) end
  return found, #found[7] + #body
end

-- Return entries in the form that Python reads, oldest first, and 1 if *most* or the limit on the bytes of bodies cut
-- some off. The first entry is always returned. Replies quote messages of *stream* after the seq *low*.
local function shown(entries, is_newest_first, most, most_bytes, stream, low)
  local kept, bytes = {}, 0
  for at, entry in ipairs(entries) do
    if at > most then return kept, 1 end
    local found, size = with_quote(stream, low, entry)
    bytes = bytes + size
    if at > 1 and bytes > most_bytes then return kept, 1 end
    table.insert(kept, is_newest_first and 1 or at, found)
  end
  return kept, 0
end
