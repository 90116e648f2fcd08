-- Read the counts of counters of a bucket, slice by slice. Only reads.
-- KEYS    samples
-- ARGV    slice precision kept since many till names...
-- USES    time slices
-- RETURNS the microsecond, the first second of the first slice, then for each name its counts, with "," after each
local first = first_slice(many) -- one more than asked for: the clock of another node may be behind

-- Return the counts by slice, from the first on. Whole windows are read, so some slices before and after are
-- included.
local function gather(name)
  local sums = {}
  for window = math.floor(first * per / SLOTS), math.floor(((last + 1) * per - 1) / SLOTS) do
    local found, ahead = window_of(samples, name, window), window * SLOTS - (first - 1) * per
    local place, sum, over = 0, nil, per -- slots mostly come in order, so those of a slice after each other
    for at = 1, #found, 2 do
      local slot, count = ahead + found[at], found[at + 1]
      if slot >= over or slot < over - per then
        sums[place] = sum
        place = (slot - slot % per) / per
        sum, over = sums[place], (place + 1) * per
      end
      sum = sum and sum + count or count
    end
    sums[place] = sum
  end
  return sums
end

local answer = { text(MICROSECONDS), text(first * slice) }
for _, name in ipairs(names) do
  local sums, shown = gather(name), {}
  for place = 1, last - first + 1 do
    local sum = sums[place]
    if type(sum) == "number" then sum = text(bounded(sum)) end
    shown[place] = sum or ""
  end
  answer[#answer + 1] = table.concat(shown, ",") .. (#shown > 0 and "," or "")
end
return answer
