-- Return a stored counter as a number; 0 if it is missing or damaged.
local function counted(stored)
  local found = tonumber(stored or "") or 0
  return math.abs(found) < 2 ^ 53 and found or 0
end

-- Return a counter of the mailbox.
local function figure(field) return counted(redis.call("HGET", mailbox, field)) end
