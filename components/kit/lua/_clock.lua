-- Return the server's clock, for scripts that seldom need it. Others use _time.lua, which costs them less.
local function microseconds()
  local time = redis.call("TIME")
  return time[1] * 1000000 + time[2]
end
