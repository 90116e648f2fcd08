-- USES    entry
-- How entries are shown: *source* has the key of the stream; *altered*, the key of what was changed of them, or false
-- if nothing was; and *low*, the seq up to which the reader may not see them.

-- Return an entry in the form that Python reads. A damaged entry may lack fields.
local function plain(entry, alterations)
  local fields, found = entry[2], { entry[1] }
  for at = SENDER, BODY, 2 do table.insert(found, fields[at] or "") end
  found[8] = alterations or ""
  return found
end

-- Return what was changed of entries, in their order.
local function alterations_of_all(source, entries)
  if not source.altered or #entries == 0 then return {} end
  local seqs = {}
  for at, entry in ipairs(entries) do seqs[at] = seq_of(entry) end
  return redis.call("HMGET", source.altered, unpack(seqs))
end

-- Add to a reply the seq that it replies to and, if it can be seen, the sender, body and alterations of that message.
-- Return how many bytes those have.
local function add_quote(source, entry, found)
  local seq = tonumber(entry[2][REPLY] or "")
  if not seq then return 0 end
  local quoted = seq > source.low and redis.call("XRANGE", source.stream, seq, seq)[1]
  local fields = quoted and quoted[2] or {}
  local alterations = quoted and source.altered and redis.call("HGET", source.altered, seq) or ""
  found[9], found[10], found[11], found[12] = seq, fields[SENDER] or "", fields[BODY] or "", alterations
  return #(fields[BODY] or "") + #alterations
end

-- Return entries in the form that Python reads, oldest first; 1 if *most* or the limit on their bytes cut some off;
-- and how many bytes they have. The first entry is always returned.
local function shown(source, entries, is_newest_first, most, most_bytes)
  local kept, bytes, alterations = {}, 0, alterations_of_all(source, entries)
  for at, entry in ipairs(entries) do
    if at > most then return kept, 1, bytes end
    local found = plain(entry, alterations[at])
    local size = #found[7] + #found[8] + add_quote(source, entry, found)
    if at > 1 and bytes + size > most_bytes then return kept, 1, bytes end
    bytes = bytes + size
    table.insert(kept, is_newest_first and 1 or at, found)
  end
  return kept, 0, bytes
end
