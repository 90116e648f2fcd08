-- Remove a permit that has ended.
local function remove_permit(permit)
  redis.call("ZREM", holders, permit)
  redis.call("ZREM", heavy, permit)
  redis.call("ZREM", since, permit)
end
