-- Return the call that touched a contact last, and the contact's label; nothing for an unknown contact.
local function touched(contact)
  return string.match(redis.call("HGET", labels, contact) or "", "^([^\1]*)\1(.*)$")
end
