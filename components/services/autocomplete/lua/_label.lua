-- Return the call that touched a contact last, and its label; nothing if it is not known.
local function touched(contact)
  return string.match(redis.call("HGET", labels, contact) or "", "^([^\1]*)\1(.*)$")
end
