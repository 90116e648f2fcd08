-- Return fields of the HASH of a chat by their names; missing fields are false.
local function head_of(key, ...)
  local names, found = { ... }, redis.call("HMGET", key, ...)
  for at = 1, #names do found[names[at]] = found[at] end
  return found
end

-- Return whether the chat exists. The HASH of a deleted chat still has the position of its sequence.
local function is_there(head) return head.seq and not head.gone end
