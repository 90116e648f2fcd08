-- Read entries of a book by their ids, or a given number of the best entries. Only reads.
-- KEYS    rows ranks
-- ARGV    best ids...
-- USES    rows weight
-- RETURNS for each that is there: id, label, weight as text
if tonumber(best) > 0 then ids = redis.call("ZREVRANGE", ranks, 0, best - 1) end
local answer = {}
for at, shelf in ipairs(shelves_of(ids)) do
  local row = shelf and row_of(shelf, ids[at])
  local score = redis.call("ZSCORE", ranks, ids[at])
  if row then
    local weight = score and 2 ^ (score - HALF_LIVES) or 0
    answer[#answer + 1] = { ids[at], label_of(row), string.format("%.17g", weight) }
  end
end
return answer
