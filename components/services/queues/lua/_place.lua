-- Return the score of a ready task: its rank, then the millisecond at which it became runnable.
local SPAN = 2 ^ 43 -- milliseconds of one rank, until the year 2248
local function place(priority, due_first, ms) return ((100 - priority) * 2 + 1 - due_first) * SPAN + ms end
