-- Return the current version and the number of its parts; nil and 0 if there is no version.
local function current_version()
  local version, count = unpack(redis.call("HMGET", current, "version", "parts"))
  return version or nil, tonumber(count or nil) or 0
end

local function part_of(version, number) return part .. version .. ":" .. number end
