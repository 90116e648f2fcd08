-- Add to counters of a bucket. A call that is repeated with its number changes nothing.
-- KEYS    samples histograms names source
-- ARGV    call plan kept_histograms counted... measured...
-- USES    time buckets
-- RETURNS 1; 0 if an error ended it, because one of the keys has another type
local SLOTS, HOUR, MOST = 120, "3600", 2 ^ 53 - 1 -- of a window; seconds; up to here numbers are exact

-- Record when names were last seen, and remove those that were not seen for *kept* seconds.
local function note(seen, kept)
  local touched = {}
  for at, name in ipairs(seen) do
    local family = string.match(name, "^([^:]+):")
    local indexes = { [names] = name, [names .. "-families"] = family }
    if family then indexes[names .. ":" .. family] = name end
    for index, member in pairs(indexes) do
      redis.call("ZADD", index, text(MICROSECONDS + at), member)
      touched[index] = true
    end
  end
  for index in pairs(touched) do
    redis.call("ZREMRANGEBYSCORE", index, "-inf", text(MICROSECONDS - kept * 1000000))
    redis.call("EXPIRE", index, kept)
  end
end

local function add()
  local seconds, seen, kept = math.floor(MICROSECONDS / 1000000), nil, nil
  -- The plan says what is stored, the coarsest last: of each its seconds, ":", for how many a slot is kept, a space.
  for precision, how_long in string.gmatch(plan, "(%d+):(%d+)") do
    local number = math.floor(seconds / precision)
    local slot = text(number % SLOTS)
    local window = text((number - slot) / SLOTS)
    seen, kept = nil, how_long
    for at = 1, #counted, 2 do -- name and count, in turn
      local name, count = counted[at], counted[at + 1]
      local key = samples .. ":" .. name .. "/" .. precision .. ":" .. window
      local sum = redis.call("HINCRBY", key, slot, count)
      if sum > MOST or sum < -MOST then redis.call("HSET", key, slot, text(sum > 0 and MOST or -MOST)) end
      if sum == tonumber(count) then -- the first of its slot, so perhaps of its window
        redis.call("EXPIREAT", key, (window + 1) * SLOTS * precision + kept)
        seen = seen or {}
        seen[#seen + 1] = name
      end
    end
  end
  if seen then note(seen, kept) end -- by the coarsest, so a name is noted once in a slot of that
end

-- Add to histograms. A slot is one text, because a field for each bucket would take ten times the memory.
local function measure()
  local seconds = math.floor(MICROSECONDS / 1000000)
  for precision, how_long in string.gmatch(kept_histograms, "(%d+):(%d+)") do
    local number = math.floor(seconds / precision)
    local slot = text(number % SLOTS)
    local window = text((number - slot) / SLOTS)
    for at = 1, #measured, 2 do -- name, and a text with each bucket and its count, in turn
      local key = histograms .. ":" .. measured[at] .. "/" .. precision .. ":" .. window
      local stored = redis.call("HGET", key, slot)
      local counts = {}
      add_buckets(counts, stored or "")
      add_buckets(counts, measured[at + 1])
      redis.call("HSET", key, slot, write_buckets(counts))
      if not stored then redis.call("EXPIREAT", key, (window + 1) * SLOTS * precision + how_long) end
    end
  end
end

local last = redis.call("SET", source, call, "EX", HOUR, "GET")
if last and (tonumber(last) or tonumber(string.match(last, "%d+"))) >= tonumber(call) then
  redis.call("SET", source, last, "EX", HOUR)
  return last == call .. " refused" and 0 or 1
end
if pcall(add) and pcall(measure) then return 1 end
redis.call("SET", source, call .. " refused", "EX", HOUR) -- done in part, it must not be done again
return 0
