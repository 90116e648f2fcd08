-- Find the counters with the highest counts in a part of a family. Only reads.
-- KEYS    family samples
-- ARGV    slice precision kept since many till coarsest after some best
-- USES    time slices
-- RETURNS the microsecond; the score of the last name that was looked at, "" if there are no more; then for each
--         counter, the first first: its name, its count
coarsest, some, best = tonumber(coarsest), tonumber(some), tonumber(best) -- seconds; names to look at, to return
local from, to = first_slice(many - 1) * per, (last + 1) * per - 1 -- slots

local function sum_of(name)
  local sum, is_there = 0, false
  for window = math.floor(from / SLOTS), math.floor(to / SLOTS) do
    local found = window_of(samples, name, window)
    for at = 1, #found, 2 do
      local slot = window * SLOTS + found[at]
      if slot >= from and slot <= to then sum, is_there = sum + found[at + 1], true end
    end
  end
  return is_there and bounded(sum)
end

-- A name is noted as seen once in a slot of the coarsest precision. *after* is the score from which to go on.
local since_seen = math.floor(from * precision / coarsest) * coarsest * 1000000
local low = after ~= "" and "(" .. after or text(since_seen)
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
local answer = { text(MICROSECONDS), #seen == 2 * some and seen[#seen] or "" }
for at = 1, math.min(best, #found) do
  answer[#answer + 1] = found[at][1]
  answer[#answer + 1] = text(found[at][2])
end
return answer
