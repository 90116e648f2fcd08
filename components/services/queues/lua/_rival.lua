-- USES    time task run
-- Return the unfinished task that has a unique key, or nil. One that has expired, and will not start, has it no more.
local function rival_of(unique)
  local id = unique ~= "-" and redis.call("HGET", uniques, unique)
  local record = id and redis.call("HGET", tasks, id)
  if not record then return nil end
  local state, expiry = run_of(redis.call("HGET", runs, id)).state, expiry_of(record)
  local is_over = expiry and expiry <= MICROSECONDS and state ~= "running" and state ~= "cancelling"
  return not is_over and id or nil
end
