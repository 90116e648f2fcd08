-- Give chunks back: the next who claims gets them, and this is no try. Repeated, it changes nothing.
-- Who holds none is no consumer any more, until it claims again.
-- KEYS[1] stream        STREAM of descriptors
-- KEYS[2] aggregations  HASH name -> number, milliseconds of the lease
-- ARGV[1] name of the aggregation
-- ARGV[2] consumer
-- ARGV[3..] ids of chunks
-- Returns how many it held
local stream, aggregations = KEYS[1], KEYS[2]
local name, consumer = ARGV[1], ARGV[2]

local lease = string.match(redis.call("HGET", aggregations, name) or "", "%d+$")
if not lease then return 0 end
local held = 0
for at = 3, #ARGV do
  local id = ARGV[at]
  local pending = redis.call("XPENDING", stream, name, id, id, 1, consumer)[1]
  if pending then
    held = held + 1
    if pending[3] < tonumber(lease) then
      local tries = pending[4] - 1
      redis.call("XCLAIM", stream, name, consumer, 0, id, "IDLE", lease, "RETRYCOUNT", tries, "JUSTID")
    end
  end
end
if #redis.call("XPENDING", stream, name, "-", "+", 1, consumer) == 0 then
  redis.call("XGROUP", "DELCONSUMER", stream, name, consumer)
end
return held
