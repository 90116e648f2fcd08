-- USES    time entry
-- Return the sender of the message that a reply quotes; nil if it is gone, or if the sender of the reply may not see
-- it.
local function quoted_sender(seq, hidden, max_age)
  local entry = tonumber(seq) > tonumber(hidden) and redis.call("XRANGE", messages, seq, seq)[1]
  return entry and (max_age == "0" or entry[2][AT] + max_age > NOW) and entry[2][SENDER] or nil
end
