-- Find the names in a sorted set that contain a text. Only reads.
-- Found are *exact*, if it is there, and some of the *most* names with the highest scores. Capital letters of ASCII
-- count as small ones, as in *wanted*.
-- A name is what follows *start*; entries that begin otherwise are passed over.
-- KEYS    names
-- ARGV    wanted exact start most limit
-- RETURNS the names, at most *limit* and one
local found = {}
if redis.call("ZSCORE", names, start .. exact) then found[1] = exact end
for _, entry in ipairs(redis.call("ZREVRANGE", names, 0, most - 1)) do
  if #found > tonumber(limit) then break end
  if string.sub(entry, 1, #start) == start then
    local name = string.sub(entry, #start + 1)
    if name ~= exact and string.find(string.lower(name), wanted, 1, true) then found[#found + 1] = name end
  end
end
return found
