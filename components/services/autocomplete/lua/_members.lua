-- USES    rows
-- Return the members of an index by which the row of an id is found.
local function members_of(id, row)
  local _, key, starts, variants = parts_of(row)
  local found = { key .. "\1" .. id }
  for start in string.gmatch(starts, "%d+") do found[#found + 1] = string.sub(key, start + 1) .. "\1" .. id end
  for variant in string.gmatch(variants, "\1%d+ ([^\1]+)") do found[#found + 1] = variant .. "\1" .. id end
  return found
end
