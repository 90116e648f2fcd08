-- Wake one of those who wait on a list by a token, which says "look"; one token is enough.
local function rouse(list)
  if redis.call("LLEN", list) == 0 then redis.call("RPUSH", list, "1") end
end
