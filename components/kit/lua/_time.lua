-- The server's clock, read once: NOW in milliseconds, MICROSECONDS, and DAY, counted from 1970.
local time = redis.call("TIME")
local MICROSECONDS = time[1] * 1000000 + time[2]
local NOW, DAY = math.floor(MICROSECONDS / 1000), math.floor(time[1] / 86400)

-- Return a whole number as text with all of its digits, since ".." rounds it.
local function text(number) return string.format("%.0f", number) end
