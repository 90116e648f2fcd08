-- Give claimed tasks back unstarted: to their old place, or to be looked at again later. The start is not counted.
-- KEYS[1] runs  HASH id -> run record
-- KEYS[2..] per queue: ready, delayed, running ZSETs, wake LIST
-- ARGV[1] microseconds until they may be claimed again; 0 is at once
-- ARGV[2..] per task: number of its queue, id, token
-- Returns how many were given back; the others were no longer the caller's
local runs, delay = KEYS[1], tonumber(ARGV[1])

local time = redis.call("TIME")
local due = time[1] * 1000000 + time[2] + delay
local released = 0

for at = 2, #ARGV, 3 do
  local number, id, token = unpack(ARGV, at, at + 2)
  local base = 2 + 4 * (number - 1)
  local ready, delayed, running, wake = unpack(KEYS, base, base + 3)
  local run, record = {}, string.match(redis.call("HGET", runs, id) or "", "^1 (.*)$")
  for word in string.gmatch(record or "", "%S+") do run[#run + 1] = word end

  if run[2] == token then
    run[1], run[2], run[3] = "waiting", "-", string.format("%d", run[3] - 1)
    run[#run] = nil
    if run[3] == "0" then
      redis.call("HDEL", runs, id)
    else
      redis.call("HSET", runs, id, "1 " .. table.concat(run, " "))
    end
    redis.call("ZREM", running, id)
    if delay > 0 then
      redis.call("ZADD", delayed, due, id)
    else
      redis.call("ZADD", ready, run[7], id)
    end
    if redis.call("LLEN", wake) == 0 then redis.call("RPUSH", wake, "1") end
    released = released + 1
  end
end
return released
