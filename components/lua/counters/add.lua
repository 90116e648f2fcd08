-- Add to counters of one bucket. Sent again under its number, it changes nothing.
-- KEYS[1] samples   HASH slot -> count; prefix to the name, "/", precision, ":" and window
-- KEYS[2] names     ZSET name by the microsecond it was last seen
-- KEYS[3] families  ZSET family, as names
-- KEYS[4] family    ZSET names of a family, as names; prefix to it
-- KEYS[5] source    STRING number of the last call of who sends, and "begun" if an error ended it
-- ARGV[1] number of this call, larger than those before
-- ARGV[2] what is stored: of each precision its seconds, ":", for how many seconds a slot is kept
-- ARGV[3..] name and count, in turn
-- Returns 1; 0 if it was ended by an error when it came before
local samples, names, families, family, source = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local call, stored = tonumber(ARGV[1]), ARGV[2]
local SLOTS, HOUR, MOST = 120, 3600, 2 ^ 53 - 1 -- of a window; seconds; up to here numbers are exact

local last = redis.call("SET", source, call .. " begun", "EX", HOUR, "GET")
if last and tonumber(string.match(last, "%d+")) >= call then
  redis.call("SET", source, last, "EX", HOUR)
  return last == call .. " begun" and 0 or 1
end

local time = redis.call("TIME")
local now, micros = tonumber(time[1]), time[1] * 1000000 + time[2]
local kinds, touched = {}, {}
for precision, kept in string.gmatch(stored, "(%d+):(%d+)") do
  local slot = math.floor(now / precision)
  local window = math.floor(slot / SLOTS)
  local suffix = "/" .. precision .. ":" .. string.format("%.0f", window)
  local ends = (window + 1) * SLOTS * precision + kept
  kinds[#kinds + 1] = { suffix = suffix, slot = slot % SLOTS, ends = ends, kept = tonumber(kept) }
end
local coarsest = kinds[#kinds]

local function register(index, member, at)
  redis.call("ZADD", index, string.format("%.0f", micros + at), member)
  touched[index] = true
end

for at = 3, #ARGV, 2 do
  local name, count = ARGV[at], tonumber(ARGV[at + 1])
  for _, kind in ipairs(kinds) do
    local key = samples .. name .. kind.suffix
    local sum = redis.call("HINCRBY", key, kind.slot, ARGV[at + 1])
    if sum > MOST or sum < -MOST then
      redis.call("HSET", key, kind.slot, string.format("%.0f", sum > 0 and MOST or -MOST))
    end
    if sum == count then -- the first of its slot, so perhaps of its window
      redis.call("EXPIREAT", key, kind.ends)
      if kind == coarsest then
        local of = string.match(name, "^([^:]+):")
        register(names, name, at)
        if of then register(families, of, at) end
        if of then register(family .. of, name, at) end
      end
    end
  end
end
for index in pairs(touched) do
  redis.call("ZREMRANGEBYSCORE", index, "-inf", string.format("%.0f", micros - coarsest.kept * 1000000))
  redis.call("EXPIRE", index, coarsest.kept)
end
redis.call("SET", source, call, "EX", HOUR)
return 1
