-- Return the fence of the last write if it is newer than the writer's. Fences have 19 digits, so comparing them as
-- text is exact. As numbers, they are exact only up to 2^53.
local function newer_fence()
  local newest = redis.call("GET", fence)
  return newest and newest > writer and newest
end
