-- USES    waiters
-- Wake the head of the queue, unless that is the caller. A wake-up only says "look", and is kept for two seconds.
local function wake_first(caller)
  local first = first_waiter()
  if not first or first == caller then return end
  local list = wake .. ":" .. first
  if redis.call("LLEN", list) == 0 then
    redis.call("RPUSH", list, "1")
    redis.call("PEXPIRE", list, 2000)
  end
end
