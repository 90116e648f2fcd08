-- Return the first values of the JSON of a row: when it was loaded, until when it is valid, its shape; nil if it is
-- missing.
local function head_of(member)
  local head = redis.call("GETRANGE", row .. ":" .. member, 0, 99)
  return string.match(head, '^%[(%d+),(%d+),"([^"]*)"')
end
