-- Wake a producer that waits for room. One token is enough, since whoever is woken looks how much there is.
local function wake_producer()
  if redis.call("LLEN", room) == 0 then redis.call("RPUSH", room, "1") end
end
