-- Make a version current if all its parts are there; the one before expires. A repeated call changes nothing.
-- KEYS    current manifest part call
-- ARGV    version count json id
-- USES    time current
-- RETURNS the numbers of the parts that are not there; if there are any, nothing has changed
local MINUTE, HOUR = 60000, 3600000 -- milliseconds
count = tonumber(count)

local function missing()
  local numbers = {}
  for number = 0, count - 1 do
    if redis.call("EXISTS", part_of(version, number)) == 0 then numbers[#numbers + 1] = number end
  end
  return numbers
end

-- Let a version expire in an hour, so that processes that are loading it can finish.
local function let_expire(old, parts)
  for number = 0, parts - 1 do redis.call("PEXPIRE", part_of(old, number), HOUR) end
  redis.call("PEXPIRE", manifest .. old, HOUR)
end

-- A repeated call must not replace a version that another import has made current since.
if redis.call("EXISTS", call .. id) == 1 then return {} end
local numbers = missing()
if #numbers > 0 then return numbers end

for number = 0, count - 1 do redis.call("PERSIST", part_of(version, number)) end
redis.call("SET", manifest .. version, json)
local before, parts = current_version()
if before ~= version then
  if before then let_expire(before, parts) end
  redis.call("HSET", current, "version", version, "parts", count, "imported_at", text(MICROSECONDS))
end
redis.call("SET", call .. id, 1, "PX", MINUTE)
return {}
