-- The server's clock, read once: MICROSECONDS, NOW in milliseconds, and DAY, counted from 1970.
local CLOCK = redis.call("TIME")
local MICROSECONDS = CLOCK[1] * 1000000 + CLOCK[2]
local NOW = math.floor(MICROSECONDS / 1000)
local DAY = math.floor(MICROSECONDS / 86400000000)

-- Return a whole number as text with all of its digits, since ".." rounds it. For a command that is given the number
-- itself, Redis writes it in a way that takes three times as long.
local function text(number) return string.format("%d", number) end
