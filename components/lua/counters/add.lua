-- Add to counters of one bucket. Sent again under its number, it changes nothing.
-- KEYS[1] samples   HASH slot -> count; prefix to the name, "/", precision, ":" and window
-- KEYS[2] names     ZSET name by the microsecond it was last seen
-- KEYS[3] families  ZSET family, as names
-- KEYS[4] family    ZSET names of a family, as names; prefix to it
-- KEYS[5] source    STRING number of the last call of who sends, and "begun" if an error ended it
-- ARGV[1] number of this call, larger than those before
-- ARGV[2] how many precisions are stored
-- ARGV[3..] of each, the coarsest last: its seconds, for how many a slot is kept; then name and count, in turn
-- Returns 1; 0 if it was ended by an error when it came before
local samples, names, families, family, source = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local call, stored = ARGV[1], tonumber(ARGV[2])
local SLOTS, HOUR, MOST = 120, "3600", 2 ^ 53 - 1 -- of a window; seconds; up to here numbers are exact

local last = redis.call("SET", source, call .. " begun", "EX", HOUR, "GET")
if last and tonumber(tonumber(last) or string.match(last, "%d+")) >= tonumber(call) then
  redis.call("SET", source, last, "EX", HOUR)
  return last == call .. " begun" and 0 or 1
end

local time = redis.call("TIME")
local now, seen = tonumber(time[1]), {}
for kind = 1, stored do
  local precision, kept = ARGV[2 * kind + 1], ARGV[2 * kind + 2]
  local number = math.floor(now / precision)
  local window = math.floor(number / SLOTS)
  local suffix, slot = "/" .. precision .. ":" .. window, tostring(number % SLOTS)
  for at = 2 * stored + 3, #ARGV, 2 do
    local key, count = samples .. ARGV[at] .. suffix, ARGV[at + 1]
    local sum = redis.call("HINCRBY", key, slot, count)
    if sum > MOST or sum < -MOST then
      redis.call("HSET", key, slot, string.format("%.0f", sum > 0 and MOST or -MOST))
    end
    if sum == tonumber(count) then -- the first of its slot, so perhaps of its window
      redis.call("EXPIREAT", key, (window + 1) * SLOTS * precision + kept)
      if kind == stored then seen[#seen + 1] = ARGV[at] end
    end
  end
end

local micros, kept, touched = now * 1000000 + time[2], ARGV[2 * stored + 2], {}
for at, name in ipairs(seen) do
  local of = string.match(name, "^([^:]+):")
  for index, member in pairs({ [names] = name, [families] = of, [of and family .. of or names] = name }) do
    redis.call("ZADD", index, string.format("%.0f", micros + at), member)
    touched[index] = true
  end
end
for index in pairs(touched) do
  redis.call("ZREMRANGEBYSCORE", index, "-inf", string.format("%.0f", micros - kept * 1000000))
  redis.call("EXPIRE", index, kept)
end
redis.call("SET", source, call, "EX", HOUR)
return 1
