-- USES    time
-- Who has a chat open, by the millisecond of their last sign of life, and who is typing, by the millisecond at which
-- that ends. A sign of life counts for LEASE milliseconds. Values in the future were written by a clock that had
-- jumped, and are ignored.
local LEASE, TYPED = 60000, 6000
