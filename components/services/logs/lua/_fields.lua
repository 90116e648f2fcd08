-- Return a reply that lists names and values in turn as a table.
local function fields_of(reply)
  local fields = {}
  for at = 1, #reply, 2 do fields[reply[at]] = reply[at + 1] end
  return fields
end
