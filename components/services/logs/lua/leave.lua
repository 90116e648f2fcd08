-- Remove an aggregation from the job, and free chunks that only it still needed, a page at a time.
-- KEYS    stream chunk counted aggregations state room dead
-- ARGV    name after limit
-- USES    needed room
-- RETURNS the last id of the page, which the next page begins *after*; "" if there are no more
if redis.call("HDEL", aggregations, name) == 1 then redis.call("XGROUP", "DESTROY", stream, name) end
local numbers, freed = all_numbers(), 0
local page = redis.call("XRANGE", stream, after == "" and "-" or "(" .. after, "+", "COUNT", limit)
for _, entry in ipairs(page) do
  local id = entry[1]
  local by = redis.call("HGET", counted, id)
  redis.call("ZREM", dead, id .. " " .. name)
  if by and #numbers > 0 and not is_needed(by, numbers) then
    free(id)
    freed = freed + 1
  end
end
if freed > 0 then wake_producer() end
return #page == tonumber(limit) and page[#page][1] or ""
