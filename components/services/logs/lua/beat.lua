-- Renew the leases of chunks. A repeated call returns the same.
-- KEYS    stream aggregations
-- ARGV    name consumer chunks...
-- USES    aggregation held
-- RETURNS the chunks that the consumer does not hold any more
local lost, about = {}, taking_part()
for _, id in ipairs(chunks) do
  if about and held(id, consumer) then
    redis.call("XCLAIM", stream, name, consumer, 0, id, "JUSTID")
  else
    lost[#lost + 1] = id
  end
end
return lost
