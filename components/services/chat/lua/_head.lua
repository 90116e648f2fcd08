-- Return fields of the HASH of a chat by their names; those that are not there are false.
local function head_of(key, ...)
  local names, found = { ... }, redis.call("HMGET", key, ...)
  for at = 1, #names do found[names[at]] = found[at] end
  return found
end

-- Return whether there is the chat. Of one that is gone, how far its sequence has come is kept.
local function is_there(head) return head.seq and not head.gone end
