-- Digests are stored in parts, so that each part stays small: one at level 0, four at level 1, sixteen at level 2,
-- ...
local function part_of(level, digest)
  return string.format("%s/%d:%d", sent, level, tonumber(string.sub(digest, 1, 8), 16) % 4 ^ level)
end

local function all_parts(level)
  local found = {}
  for part = 0, level do
    for each = 0, 4 ^ part - 1 do found[#found + 1] = sent .. "/" .. part .. ":" .. each end
  end
  return found
end
