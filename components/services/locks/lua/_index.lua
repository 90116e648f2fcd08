-- The index has the end of a lock's time by its key, and below zero the fences: by FENCE that of the lock's last
-- holder, until it is released, and by "" the latest of all locks of the index.
local FENCE, ONE_DAY = "\255" .. lock, 86400000 -- milliseconds
