-- Buckets of a histogram, as they are stored: the number of a bucket, its count, and so on, with a blank after each.
local MOST_IN_BUCKET = 2 ^ 53 - 1 -- up to here numbers are exact

-- Add the buckets in a text to the table *counts*.
local function add_buckets(counts, words)
  for bucket, count in string.gmatch(words, "(%d+) (%d+)") do
    bucket = tonumber(bucket)
    counts[bucket] = math.min(MOST_IN_BUCKET, (counts[bucket] or 0) + count)
  end
end

local function write_buckets(counts)
  local words = {}
  for bucket, count in pairs(counts) do words[#words + 1] = string.format("%d %d ", bucket, count) end
  return table.concat(words)
end
