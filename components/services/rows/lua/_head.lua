-- Return how the JSON of a row begins: when it was loaded, until when it is good, its shape; nil if it is not there.
local function head_of(member)
  local head = redis.call("GETRANGE", row .. ":" .. member, 0, 99)
  return string.match(head, '^%[(%d+),(%d+),"([^"]*)"')
end
