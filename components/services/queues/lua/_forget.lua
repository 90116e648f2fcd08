-- Remove everything about tasks except their results.
local function forget(ids)
  for _, hash in ipairs({ tasks, runs, errors, progress }) do redis.call("HDEL", hash, unpack(ids)) end
end
