-- Return fields of the HASH of a chat by their names; those that are not there are false.
local function head_of(key, ...)
  local names, found = { ... }, {}
  for at, value in ipairs(redis.call("HMGET", key, ...)) do found[names[at]] = value end
  return found
end

-- Return whether there is the chat. Of one that is gone, how far its sequence has come is kept.
local function is_there(head) return head.seq and not head.gone end
