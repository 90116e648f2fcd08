-- The longest lease of the permits, in microseconds, since none can end later; nil if it is not known.
local function longest_lease() return tonumber(redis.call("HGET", stats, "lease") or nil) end

local function note_lease()
  if tonumber(lease) > (longest_lease() or 0) then redis.call("HSET", stats, "lease", lease) end
end
