-- Find those of a family that counted most, among some of it. Reads only.
-- KEYS[1] family   ZSET names by the microsecond they were last seen
-- KEYS[2] samples  HASH slot -> count; prefix to the name, "/", precision, ":" and window
-- ARGV[1] seconds of a slice
-- ARGV[2] seconds of a slot: the stored precision of which a slice is so many
-- ARGV[3] for how many seconds a slot is kept
-- ARGV[4] first second; "" for as many slices as the next says
-- ARGV[5] how many slices
-- ARGV[6] second that is the first after the last; "" for now
-- ARGV[7] seconds of a slot of the coarsest precision that is stored: as often a name is noted as seen
-- ARGV[8] score after which to look; "" for the first of those that were seen in that time
-- ARGV[9] how many names to look at
-- ARGV[10] how many to return
-- Returns microsecond, score of the last name looked at or "" if there are no more, then of each: name, count
local family, samples = KEYS[1], KEYS[2]
local slice, precision, kept = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local since, many, till, coarsest = ARGV[4], tonumber(ARGV[5]), ARGV[6], tonumber(ARGV[7])
local after, some, best = ARGV[8], tonumber(ARGV[9]), tonumber(ARGV[10])
local SLOTS, MOST = 120, 2 ^ 53 - 1 -- of a window; up to here numbers are exact

local time = redis.call("TIME")
local now, per = tonumber(time[1]), slice / precision
local final = math.floor(math.min(now, (tonumber(till) or now + 1) - 1) / slice)
local begin = since == "" and final - many + 1 or math.floor(since / slice)
local from, to = math.max(begin, math.floor((now - kept) / slice)) * per, (final + 1) * per - 1

local function sum_of(name)
  local sum, is_there = 0, false
  for window = math.floor(from / SLOTS), math.floor(to / SLOTS) do
    local key = samples .. name .. "/" .. precision .. ":" .. string.format("%.0f", window)
    local found = redis.call("HGETALL", key)
    for at = 1, #found, 2 do
      local slot = window * SLOTS + found[at]
      if slot >= from and slot <= to then sum, is_there = sum + found[at + 1], true end
    end
  end
  return is_there and math.max(-MOST, math.min(MOST, sum))
end

local since_seen = math.floor(from * precision / coarsest) * coarsest * 1000000
local low = after ~= "" and "(" .. after or string.format("%.0f", since_seen)
local seen = redis.call("ZRANGE", family, low, "+inf", "BYSCORE", "LIMIT", 0, some, "WITHSCORES")
local found = {}
for at = 1, #seen, 2 do
  local sum = sum_of(seen[at])
  if sum then found[#found + 1] = { seen[at], sum } end
end
table.sort(found, function(a, b)
  if a[2] ~= b[2] then return a[2] > b[2] end
  return a[1] < b[1]
end)
local answer = { string.format("%.0f", now * 1000000 + time[2]), #seen == 2 * some and seen[#seen] or "" }
for at = 1, math.min(best, #found) do
  answer[#answer + 1] = found[at][1]
  answer[#answer + 1] = string.format("%.0f", found[at][2])
end
return answer
