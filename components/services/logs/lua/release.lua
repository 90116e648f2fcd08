-- Give chunks back for the next claim, without counting a try. A repeated call changes nothing.
-- KEYS    stream aggregations
-- ARGV    name consumer chunks...
-- USES    aggregation held
-- RETURNS how many the consumer held
local about, count = taking_part(), 0
if not about then return 0 end
for _, id in ipairs(chunks) do
  local pending = held(id, consumer)
  if pending then
    count = count + 1
    if pending[3] < tonumber(about.lease) then
      local tries = pending[4] - 1
      redis.call("XCLAIM", stream, name, consumer, 0, id, "IDLE", about.lease, "RETRYCOUNT", tries, "JUSTID")
    end
  end
end
-- A consumer that holds nothing is forgotten until it claims again.
if #redis.call("XPENDING", stream, name, "-", "+", 1, consumer) == 0 then
  redis.call("XGROUP", "DELCONSUMER", stream, name, consumer)
end
return count
