-- USES    time
-- The weight of what was selected once, k half-lives ago, is 2^-k. Its logarithm, counted from a fixed instant, does
-- not change with time: so the order of ranks needs no sweeping.
local HALF_LIVES = MICROSECONDS / 1000000 / (30 * 86400) -- since 1970
