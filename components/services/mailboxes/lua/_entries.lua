-- Return entries of the stream, the oldest or the newest, from the id *first* on, and always oldest first.
local function entries(which, first, limit)
  if which ~= "newest" then return redis.call("XRANGE", messages, first, "+", "COUNT", limit) end
  local found, ordered = redis.call("XREVRANGE", messages, "+", first, "COUNT", limit), {}
  for at = #found, 1, -1 do ordered[#ordered + 1] = found[at] end
  return ordered
end

local function id_of(entry) return string.match(entry[1], "%d+") end

-- Return a message in the form that Python reads.
local function shown(entry, is_again)
  local fields = entry[2]
  return { id_of(entry), is_again and 1 or 0, fields[2], fields[4] or "", fields[6] or "" }
end
