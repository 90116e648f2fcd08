-- USES    time
-- What is remembered of pushes, and of messages that are gone, for a day at least: a HASH of today, one of yesterday.
local today, yesterday = sent .. ":" .. DAY, sent .. ":" .. DAY - 1
