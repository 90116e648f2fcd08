-- USES    days
local TWO_DAYS = 2 * 86400000 -- milliseconds

-- Record the sender of a removed message.
local function remember_sender(id, sender) redis.call("HSET", today, id .. "/from", sender) end

-- Begin a new part when today's part is large: 10,000 fields, or two for each message of the limit.
local function bound_memory(limit)
  redis.call("PEXPIRE", today, TWO_DAYS)
  if redis.call("HLEN", today) >= math.max(10000, 2 * limit) then
    redis.call("UNLINK", yesterday)
    redis.call("RENAME", today, yesterday)
  end
end
