-- Hold chunks for another lease. Repeated, it says the same.
-- KEYS[1] stream        STREAM of descriptors
-- KEYS[2] aggregations  HASH name -> number, milliseconds of the lease
-- ARGV[1] name of the aggregation
-- ARGV[2] consumer
-- ARGV[3..] ids of chunks
-- Returns those that it holds no longer
local stream, aggregations = KEYS[1], KEYS[2]
local name, consumer = ARGV[1], ARGV[2]

local lost = {}
local is_there = redis.call("HEXISTS", aggregations, name) == 1
for at = 3, #ARGV do
  local id = ARGV[at]
  if is_there and #redis.call("XPENDING", stream, name, id, id, 1, consumer) > 0 then
    redis.call("XCLAIM", stream, name, consumer, 0, id, "JUSTID")
  else
    lost[#lost + 1] = id
  end
end
return lost
