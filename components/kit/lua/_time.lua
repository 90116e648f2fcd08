-- The server's clock, read once: NOW in milliseconds, and as text, since ".." would round it; DAY since 1970.
local time = redis.call("TIME")
local NOW, DAY = time[1] * 1000 + math.floor(time[2] / 1000), math.floor(time[1] / 86400)

-- Return a whole number as text with all of its digits.
local function text(number) return string.format("%.0f", number) end
