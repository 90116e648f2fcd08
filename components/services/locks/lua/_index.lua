-- The index has the end of the lock's time under its key. It also has fences, as negative scores: that of the lock's
-- last holder under FENCE, until it is released, and the latest of all locks of the index under "". Under LONGEST is,
-- also negative, the longest time in milliseconds that a lock of the index was given.
local FENCE, LONGEST, ONE_DAY = "\255" .. lock, "\254", 86400000 -- milliseconds
