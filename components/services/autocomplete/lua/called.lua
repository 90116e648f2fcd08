-- Find the entries whose whole name has this search key. Only reads.
-- KEYS    book entries rows
-- ARGV    wanted limit
-- USES    rows
-- RETURNS for each, by id: \2, id, \1, label, all as one text; or nil if there is no such book
limit = tonumber(limit)
local AT_ONCE, MOST = 250, 1000 -- members to examine: names that merely end with these words have one, too

if redis.call("EXISTS", book) == 0 then return nil end
local first, last = "[" .. wanted .. "\1", "[" .. wanted .. "\1\255"
local answer, offset = {}, 0
while offset and offset < MOST and #answer < limit do
  local found = redis.call("ZRANGE", entries, first, last, "BYLEX", "LIMIT", offset, AT_ONCE)
  local ids = {}
  for at, member in ipairs(found) do ids[at] = string.sub(member, #wanted + 2) end
  for at, shelf in ipairs(shelves_of(ids)) do
    local label, key = parts_of(row_of(shelf, ids[at]))
    if key == wanted and #answer < limit then answer[#answer + 1] = "\2" .. ids[at] .. "\1" .. label end
  end
  offset = #found == AT_ONCE and offset + AT_ONCE
end
return table.concat(answer)
