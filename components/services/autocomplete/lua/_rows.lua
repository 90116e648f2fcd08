-- USES    items
-- A row has these parts, with \1 between them: the id; the label; the search key, empty if it is the label with A to
-- Z in lower case; the byte positions where further words begin; and for each start from which words may be written
-- as one, its number, a blank, and the key from there on without blanks. A shelf is a field of the HASH. It holds, as
-- items, the rows whose ids share the first four digits of their digest.
local function shelf_of(id) return string.sub(redis.sha1hex(id), 1, 4) end

-- Return the shelves of these ids, in the order of the ids.
local function shelves_of(ids)
  local shelves = {}
  for at, id in ipairs(ids) do shelves[at] = shelf_of(id) end
  return #ids > 0 and redis.call("HMGET", rows, unpack(shelves)) or {}
end

-- Return the row of an id from its shelf; nil if there is none.
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
