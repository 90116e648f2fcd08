-- USES    entry
-- Return the last seq between *low* and *high*, both exclusive, whose fields fit; *low* if none does. This is a
-- binary search, because all entries that fit come before those that do not.
local function last_fitting(stream, low, high, fits)
  while high - low > 1 do
    local middle = math.floor((low + high) / 2)
    local entry = redis.call("XRANGE", stream, middle, high, "COUNT", 1)[1]
    if entry and fits(entry[2]) then low = tonumber(seq_of(entry)) else high = middle end
  end
  return low
end
