-- USES    aggregation
-- Return the numbers of all aggregations that take part.
local function all_numbers()
  local numbers = {}
  for _, about in ipairs(redis.call("HVALS", aggregations)) do
    local number = read_aggregation(about).number
    if tonumber(number) then numbers[#numbers + 1] = number end
  end
  return numbers
end

-- Return true if one of the aggregations *numbers* is not among those that have counted a chunk, such as " 1 3 ".
local function is_needed(by, numbers)
  for _, number in ipairs(numbers) do
    if not string.find(by, " " .. number .. " ", 1, true) then return true end
  end
  return false
end

local function free(id)
  redis.call("HINCRBY", state, "bytes", 0 - redis.call("STRLEN", chunk .. id))
  redis.call("HINCRBY", state, "chunks", -1)
  redis.call("XDEL", stream, id)
  redis.call("UNLINK", chunk .. id)
  redis.call("HDEL", counted, id)
end

-- Record that the aggregation *own* is done with a chunk, and free the chunk if it was the last to need it. Return
-- true if it was.
local function be_done(id, own, numbers)
  local by = (redis.call("HGET", counted, id) or " ") .. own .. " "
  if is_needed(by, numbers) then
    redis.call("HSET", counted, id, by)
    return false
  end
  free(id)
  return true
end
