-- Wake one of those who wait on a list, unless there is a token for them already: it says "look".
local function rouse(list)
  if redis.call("LLEN", list) == 0 then redis.call("RPUSH", list, "1") end
end
