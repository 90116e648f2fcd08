-- USES    time
-- A selection k half-lives ago has the weight 2^-k. The logarithm of the weight, counted from a fixed instant, does
-- not change with time, so ranks need no regular update.
local HALF_LIVES = MICROSECONDS / 1000000 / (30 * 86400) -- since 1970
