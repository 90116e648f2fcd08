-- USES    time
-- Records of pushes and removed messages, kept for at least a day: one HASH for today, one for yesterday.
local today, yesterday = sent .. ":" .. DAY, sent .. ":" .. DAY - 1
