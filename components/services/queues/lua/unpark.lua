-- Make the first parked task due after a number of microseconds, and wake a worker for it. A repeated call makes no
-- second task due.
-- KEYS    parked unparked queues...(delayed wake)
-- ARGV    limit caller delay
-- USES    time rouse
-- RETURNS 1 if a task was parked, else 0
-- The most outdated entries that one call removes, and the milliseconds for which a call may be repeated.
local MOST, REPEATED = 100, 60000
local key, asked = parked .. limit, unparked .. caller
local any = queues[1] -- the name of a queue is appended to its keys

local said = redis.call("GET", asked)
if said then return tonumber(said) end
if redis.call("EXISTS", key) == 0 then return 0 end

local found = 0
for _ = 1, MOST do
  local id, queue = string.match(redis.call("ZPOPMIN", key)[1] or "", "^(%S+) (.*)$")
  if not id then break end
  if redis.call("ZSCORE", any.delayed .. queue, id) then -- otherwise it was started, cancelled or deleted meanwhile
    redis.call("ZADD", any.delayed .. queue, text(MICROSECONDS + delay), id)
    rouse(any.wake .. queue)
    found = 1
    break
  end
end
redis.call("SET", asked, found, "PX", REPEATED)
return found
