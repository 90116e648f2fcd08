-- Return a counter of the mailbox; 0 if it is missing or damaged.
local function figure(field)
  local found = tonumber(redis.call("HGET", mailbox, field) or "") or 0
  return math.abs(found) < 2 ^ 53 and found or 0
end
