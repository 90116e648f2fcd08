-- Return the fence of the last write if it is newer than the writer's. Both have 19 digits, so that they compare
-- exactly as text; as numbers they would only up to 2^53.
local function newer_fence()
  local newest = redis.call("GET", fence)
  return newest and newest > writer and newest
end
