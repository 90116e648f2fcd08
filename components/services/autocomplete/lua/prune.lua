-- Delete the ranks of ids that are in neither the book nor the running load. A repeated call changes nothing.
-- KEYS    rows ranks next_rows
-- ARGV    ids...
-- USES    rows
-- RETURNS how many are forgotten
local function is_in(shelves, id) return locate(redis.call("HGET", shelves, shelf_of(id)) or "", id) end

local gone = 0
for _, id in ipairs(ids) do
  if not is_in(rows, id) and not is_in(next_rows, id) then gone = gone + redis.call("ZREM", ranks, id) end
end
return gone
