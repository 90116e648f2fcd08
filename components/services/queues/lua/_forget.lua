-- Remove all that is known of tasks, but for their results.
local function forget(ids)
  for _, hash in ipairs({ tasks, runs, errors, progress }) do redis.call("HDEL", hash, unpack(ids)) end
end
