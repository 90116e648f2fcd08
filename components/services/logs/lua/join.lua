-- Add an aggregation to the job: it gets all chunks in flight. A repeated call keeps its position.
-- KEYS    stream aggregations state
-- ARGV    name lease gone
-- USES    aggregation fields
-- RETURNS the number of the aggregation
local number = read_aggregation(redis.call("HGET", aggregations, name) or "").number
if not tonumber(number) then
  number = redis.call("HINCRBY", state, "joined", 1)
  redis.call("XGROUP", "CREATE", stream, name, "0", "MKSTREAM")
end
-- A consumer without chunks that has made no call for *gone* milliseconds counts as killed.
for _, about in ipairs(redis.call("XINFO", "CONSUMERS", stream, name)) do
  local consumer = fields_of(about)
  local is_gone = consumer.pending == 0 and consumer.idle >= tonumber(gone)
  if is_gone then redis.call("XGROUP", "DELCONSUMER", stream, name, consumer.name) end
end
redis.call("HSET", aggregations, name, write_aggregation({ number = number, lease = lease }))
return tonumber(number)
