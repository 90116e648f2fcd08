-- USES    time
-- The query, in seconds: *slice*; *precision* of the stored slots that make a slice; *kept*, for how long a slot is
-- kept; *since*, "" for the latest *many* slices; *till*, "" for now.
local SLOTS, MOST = 120, 2 ^ 53 - 1 -- of a window; up to here numbers are exact
local slice, precision, kept, till = tonumber(slice), tonumber(precision), tonumber(kept), tonumber(till)
local seconds, per = math.floor(MICROSECONDS / 1000000), slice / precision
local last = math.floor(math.min(seconds, (till or seconds + 1) - 1) / slice)

-- Return the first slice, which is kept; by default *before* come before the last.
local function first_slice(before)
  local begin = since == "" and last - before or math.floor(since / slice)
  return math.max(begin, math.floor((seconds - kept) / slice))
end

local function window_of(key, name, window)
  return redis.call("HGETALL", key .. ":" .. name .. "/" .. precision .. ":" .. text(window))
end

local function bounded(sum) return math.max(-MOST, math.min(MOST, sum)) end
