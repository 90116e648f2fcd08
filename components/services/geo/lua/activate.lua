-- Make a version current if all its parts are there; the one before expires. Repeated, it changes nothing.
-- KEYS[1] current   HASH version, parts, imported_at
-- KEYS[2] manifest  STRING, prefix to a version: JSON
-- KEYS[3] part      STRING, prefix to a version, ":", number: compressed bytes
-- KEYS[4] answered  STRING that this call was carried out
-- ARGV[1] version
-- ARGV[2] how many parts it has
-- ARGV[3] its manifest
-- Returns the numbers of the parts that are not there; if any, nothing has changed
local current, manifest, part, answered = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local version, count, text = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local MINUTE, HOUR = 60000, 3600000 -- milliseconds

-- Sent again, it must not undo what another import has made current since.
if redis.call("EXISTS", answered) == 1 then return {} end
local missing = {}
for number = 0, count - 1 do
  if redis.call("EXISTS", part .. version .. ":" .. number) == 0 then missing[#missing + 1] = number end
end
if #missing > 0 then return missing end

for number = 0, count - 1 do redis.call("PERSIST", part .. version .. ":" .. number) end
redis.call("SET", manifest .. version, text)
local before, parts = unpack(redis.call("HMGET", current, "version", "parts"))
if before ~= version then
  -- Who loads it now can finish.
  for number = 0, (tonumber(parts or nil) or 0) - 1 do
    redis.call("PEXPIRE", part .. before .. ":" .. number, HOUR)
  end
  if before then redis.call("PEXPIRE", manifest .. before, HOUR) end
  local time = redis.call("TIME")
  local now = string.format("%.0f", time[1] * 1000000 + time[2])
  redis.call("HSET", current, "version", version, "parts", count, "imported_at", now)
end
redis.call("SET", answered, 1, "PX", MINUTE)
return {}
