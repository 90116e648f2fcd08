-- The index has the end of the lock's time under its key. It also has fences, as negative scores: that of the lock's
-- last holder under FENCE, until it is released, and the latest of all locks of the index under "".
local FENCE, ONE_DAY = "\255" .. lock, 86400000 -- milliseconds
