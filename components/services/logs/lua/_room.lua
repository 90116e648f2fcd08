-- Wake a producer that waits for room. One token is enough, because the woken producer checks how much room there is.
local function wake_producer()
  if redis.call("LLEN", room) == 0 then redis.call("RPUSH", room, "1") end
end
