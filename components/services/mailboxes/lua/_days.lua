-- USES    time
-- Records of pushes and removed messages, kept for at least a day: one HASH for today, one for yesterday; and one for
-- the next day, if the clock was ahead.
local today, yesterday = sent .. ":" .. DAY, sent .. ":" .. DAY - 1

local function recorded(field)
  return redis.call("HGET", today, field) or redis.call("HGET", yesterday, field)
    or redis.call("HGET", sent .. ":" .. DAY + 1, field)
end
