-- Add to counters of one bucket. Sent again under its number, it changes nothing.
-- KEYS[1] samples  HASH slot -> count; prefix to the name, "/", precision, ":" and window
-- KEYS[2] names    ZSET name by the microsecond it was last seen; prefix to ":" and a family, and to "-families"
-- KEYS[3] source   STRING number of the last call of who sends, and "refused" if an error ended it
-- ARGV[1] number of this call, larger than those before
-- ARGV[2] what is stored, the coarsest last: of each its seconds, ":", for how many a slot is kept, and a space
-- ARGV[3..] name and count, in turn
-- Returns 1; 0 if it was ended by an error, since something else stands in one of the keys
local samples, names, source = KEYS[1], KEYS[2], KEYS[3]
local call, plan = ARGV[1], ARGV[2]
local SLOTS, HOUR, MOST = 120, "3600", 2 ^ 53 - 1 -- of a window; seconds; up to here numbers are exact

local last = redis.call("SET", source, call, "EX", HOUR, "GET")
if last and (tonumber(last) or tonumber(string.match(last, "%d+"))) >= tonumber(call) then
  redis.call("SET", source, last, "EX", HOUR)
  return last == call .. " refused" and 0 or 1
end

local function add()
  local time = redis.call("TIME")
  local now, seen, kept = tonumber(time[1]), nil, nil
  for precision, seconds in string.gmatch(plan, "(%d+):(%d+)") do
    local number = math.floor(now / precision)
    local slot = number % SLOTS
    local window = (number - slot) / SLOTS
    seen, kept = nil, seconds
    for at = 3, #ARGV, 2 do
      local key, count = samples .. ARGV[at] .. "/" .. precision .. ":" .. window, ARGV[at + 1]
      local sum = redis.call("HINCRBY", key, slot, count)
      if sum > MOST or sum < -MOST then
        redis.call("HSET", key, slot, string.format("%.0f", sum > 0 and MOST or -MOST))
      end
      if sum == tonumber(count) then -- the first of its slot, so perhaps of its window
        redis.call("EXPIREAT", key, (window + 1) * SLOTS * precision + kept)
        seen = seen or {}
        seen[#seen + 1] = ARGV[at]
      end
    end
  end
  if not seen then return end -- by the coarsest, so a name is noted once in a slot of that

  local micros, touched = now * 1000000 + time[2], {}
  for at, name in ipairs(seen) do
    local family = string.match(name, "^([^:]+):")
    local indexes = { [names] = name, [names .. "-families"] = family }
    if family then indexes[names .. ":" .. family] = name end
    for index, member in pairs(indexes) do
      redis.call("ZADD", index, string.format("%.0f", micros + at), member)
      touched[index] = true
    end
  end
  for index in pairs(touched) do
    redis.call("ZREMRANGEBYSCORE", index, "-inf", string.format("%.0f", micros - kept * 1000000))
    redis.call("EXPIRE", index, kept)
  end
end

if pcall(add) then return 1 end
redis.call("SET", source, call .. " refused", "EX", HOUR) -- done in part, it must not be done again
return 0
