-- USES    items
-- A row is: id, label, search key unless that is the label with A to Z in small letters, the bytes where further
-- words begin, and for each start where words may be written as one its number, a blank, and the key from there on so
-- written; with \1 between. The rows whose ids have the first four digits of a digest in common are items on one
-- shelf, a field of the HASH.
local function shelf_of(id) return string.sub(redis.sha1hex(id), 1, 4) end

-- Return the shelves of these ids, in their order.
local function shelves_of(ids)
  local shelves = {}
  for at, id in ipairs(ids) do shelves[at] = shelf_of(id) end
  return #ids > 0 and redis.call("HMGET", rows, unpack(shelves)) or {}
end

-- Return the row of an id on its shelf; nil if it is not there.
local function row_of(shelf, id)
  local from, to = locate(shelf, id)
  return from and string.sub(shelf, from + 1, to)
end

local function label_of(row) return string.match(row, "^[^\1]+\1([^\1]+)") end

-- Return the label, the search key, the starts and the variants of a row.
local function parts_of(row)
  local label, key, starts, variants = string.match(row, "^[^\1]+\1([^\1]+)\1([^\1]*)\1?([^\1]*)(.*)$")
  return label, key == "" and string.lower(label) or key, starts, variants
end
