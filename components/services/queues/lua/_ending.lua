local TOLD = 60000 -- milliseconds for which those who wait for an end can notice it

-- A task has ended, or is gone: free its unique key, and wake those who wait for its end.
local function tell_end(id, unique)
  if unique ~= "-" and redis.call("HGET", uniques, unique) == id then redis.call("HDEL", uniques, unique) end
  if redis.call("SREM", awaited, id) == 1 then
    redis.call("RPUSH", ended .. id, "1")
    redis.call("PEXPIRE", ended .. id, TOLD)
  end
end
