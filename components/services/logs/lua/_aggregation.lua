-- RECORD  aggregation: number lease
-- Return the number and the lease, in milliseconds, of the aggregation *name*; nil if it takes no part.
local function taking_part()
  local about = read_aggregation(redis.call("HGET", aggregations, name) or "")
  if tonumber(about.number) and tonumber(about.lease) then return about end
end
