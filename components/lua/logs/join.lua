-- Let an aggregation take part: it gets all chunks that are there. Repeated, it keeps its place.
-- KEYS[1] stream        STREAM of descriptors
-- KEYS[2] aggregations  HASH name -> number, milliseconds of the lease
-- KEYS[3] state         HASH joined: how many ever took part
-- ARGV[1] name of the aggregation
-- ARGV[2] milliseconds of its lease
-- Returns its number
local stream, aggregations, state = KEYS[1], KEYS[2], KEYS[3]
local name, lease = ARGV[1], ARGV[2]

local number = string.match(redis.call("HGET", aggregations, name) or "", "^%d+")
if not number then
  number = redis.call("HINCRBY", state, "joined", 1)
  redis.call("XGROUP", "CREATE", stream, name, "0", "MKSTREAM")
end
redis.call("HSET", aggregations, name, number .. " " .. lease)
return tonumber(number)
