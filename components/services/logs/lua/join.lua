-- Let an aggregation take part: it gets all chunks that are there. Repeated, it keeps its place.
-- KEYS[1] stream        STREAM of descriptors
-- KEYS[2] aggregations  HASH name -> number, milliseconds of the lease
-- KEYS[3] state         HASH joined: how many ever took part
-- ARGV[1] name of the aggregation
-- ARGV[2] milliseconds of its lease
-- ARGV[3] milliseconds after which a consumer that holds nothing and asks for nothing is forgotten
-- Returns its number
local stream, aggregations, state = KEYS[1], KEYS[2], KEYS[3]
local name, lease, gone = ARGV[1], ARGV[2], tonumber(ARGV[3])

local number = string.match(redis.call("HGET", aggregations, name) or "", "^%d+")
if not number then
  number = redis.call("HINCRBY", state, "joined", 1)
  redis.call("XGROUP", "CREATE", stream, name, "0", "MKSTREAM")
end
for _, about in ipairs(redis.call("XINFO", "CONSUMERS", stream, name)) do
  local consumer = {}
  for at = 1, #about, 2 do consumer[about[at]] = about[at + 1] end
  local is_gone = consumer.pending == 0 and consumer.idle >= gone
  if is_gone then redis.call("XGROUP", "DELCONSUMER", stream, name, consumer.name) end
end
redis.call("HSET", aggregations, name, number .. " " .. lease)
return tonumber(number)
