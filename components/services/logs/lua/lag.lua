-- Find the oldest chunk that each aggregation of a job has not counted, except dead ones. Only reads.
-- KEYS    stream aggregations dead
-- USES    time
-- RETURNS now, in milliseconds; chunks in flight; dead chunks; the name and the record of each aggregation, and the
--         id of its oldest chunk or "", in turn
local found = { text(NOW), redis.call("XLEN", stream), redis.call("ZCARD", dead) }
if redis.call("EXISTS", stream) == 0 then return found end
for _, group in ipairs(redis.call("XINFO", "GROUPS", stream)) do
  local facts = {}
  for at = 1, #group, 2 do facts[group[at]] = group[at + 1] end
  local about = redis.call("HGET", aggregations, facts.name)
  if about then
    local held = redis.call("XPENDING", stream, facts.name)[2]
    local new = redis.call("XRANGE", stream, "(" .. facts["last-delivered-id"], "+", "COUNT", 1)[1]
    found[#found + 1], found[#found + 2] = facts.name, about
    found[#found + 1] = held or new and new[1] or ""
  end
end
return found
