-- Read what counters of one bucket counted, slice by slice. Reads only.
-- KEYS[1] samples  HASH slot -> count; prefix to the name, "/", precision, ":" and window
-- ARGV[1] seconds of a slice
-- ARGV[2] seconds of a slot: the stored precision of which a slice is so many
-- ARGV[3] for how many seconds a slot is kept
-- ARGV[4] first second; "" for as many slices as the next says, and one more
-- ARGV[5] how many slices
-- ARGV[6] second that is the first after the last; "" for now
-- ARGV[7..] names
-- Returns microsecond, first second of the first slice, then for each name: counts with "," after each
local samples = KEYS[1]
local slice, precision, kept = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local since, many, till = ARGV[4], tonumber(ARGV[5]), ARGV[6]
local SLOTS, MOST = 120, 2 ^ 53 - 1 -- of a window; up to here numbers are exact

local time = redis.call("TIME")
local now = tonumber(time[1])
local final = math.floor(math.min(now, (tonumber(till) or now + 1) - 1) / slice) -- the last slice
local begin = since == "" and final - many or math.floor(since / slice)
local first = math.max(begin, math.floor((now - kept) / slice))

-- Counts by slice, from the first on; those of whole windows, so also of some before it and after the last.
local function gather(name)
  local sums, per = {}, slice / precision
  for window = math.floor(first * per / SLOTS), math.floor(((final + 1) * per - 1) / SLOTS) do
    local key = samples .. name .. "/" .. precision .. ":" .. string.format("%.0f", window)
    local found, ahead = redis.call("HGETALL", key), window * SLOTS - (first - 1) * per
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

local answer = { string.format("%.0f", now * 1000000 + time[2]), string.format("%.0f", first * slice) }
for at = 7, #ARGV do
  local sums, shown = gather(ARGV[at]), {}
  for place = 1, final - first + 1 do
    local sum = sums[place]
    if type(sum) == "number" then sum = string.format("%.0f", math.max(-MOST, math.min(MOST, sum))) end
    shown[place] = sum or ""
  end
  answer[#answer + 1] = table.concat(shown, ",") .. (#shown > 0 and "," or "")
end
return answer
