-- Read the histograms of counters of a bucket, slice by slice or all slices merged. Only reads.
-- KEYS    samples histograms
-- ARGV    slice precision kept since many till merged names...
-- USES    time slices buckets
-- RETURNS the microsecond, the first second of the first slice, then for each name its histograms, with "," after
--         each: the sum of the values, then each bucket and its count, with " " between
local first = first_slice(many) -- one more than asked for: the clock of another node may be behind

-- Call *see* with each slot of a name, the place of its slice, and what the slot has.
local function each_slot(key, name, see)
  for window = math.floor(first * per / SLOTS), math.floor(((last + 1) * per - 1) / SLOTS) do
    local found = window_of(key, name, window)
    for at = 1, #found, 2 do
      local slice_of_slot = math.floor((window * SLOTS + found[at]) / per)
      if slice_of_slot >= first and slice_of_slot <= last then
        see(merged == "1" and 0 or slice_of_slot - first, found[at + 1])
      end
    end
  end
end

local function gather(name)
  local sums, counts = {}, {}
  each_slot(samples, name, function(place, sum) sums[place] = (sums[place] or 0) + sum end)
  each_slot(histograms, name, function(place, words)
    counts[place] = counts[place] or {}
    add_buckets(counts[place], words)
  end)
  return sums, counts
end

local answer = { text(MICROSECONDS), text(first * slice) }
for _, name in ipairs(names) do
  local sums, counts = gather(name)
  local shown = {}
  for place = 0, merged == "1" and 0 or last - first do
    local here = counts[place]
    shown[place + 1] = here and text(bounded(sums[place] or 0)) .. " " .. write_buckets(here) or ""
  end
  answer[#answer + 1] = table.concat(shown, ",") .. (#shown > 0 and "," or "")
end
return answer
