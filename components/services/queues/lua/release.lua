-- Give claimed tasks back unfinished: to their old place, or to be looked at again later.
-- The start is no attempt; if the function had begun, it is counted as cut off. Repeated, it changes nothing more.
-- KEYS[1] runs  HASH id -> run record
-- KEYS[2..] per queue: ready, delayed, running ZSETs, wake LIST, STRING number of starts that were cut off
-- ARGV[1] microseconds until they may be claimed again; 0 is at once
-- ARGV[2] how long the number of starts that were cut off is kept after the last, milliseconds
-- ARGV[3..] per task the words: number of its queue, id, token, 1 if its function had begun, else 0
-- Returns how many were given back; the others were no longer the caller's
local runs, delay, kept = KEYS[1], tonumber(ARGV[1]), ARGV[2]

local time = redis.call("TIME")
local due = time[1] * 1000000 + time[2] + delay
local released = 0

-- What is to be cancelled is not started again: its lease ends, and who finds that buries it. ZREM comes first: it
-- needs no memory, and a full server lets the rest of the script pass after it.
local function settle(id, run, ready, delayed, running)
  redis.call("ZREM", running, id)
  if run[1] == "cancelling" then
    redis.call("ZADD", running, 0, id)
    return
  end
  run[1] = "waiting"
  redis.call("ZADD", delay > 0 and delayed or ready, delay > 0 and due or run[8], id)
end

for at = 3, #ARGV do
  local number, id, token, begun = string.match(ARGV[at], "^(%d+) (%S+) (%S+) ([01])$")
  local ready, delayed, running, wake, cut = unpack(KEYS, 2 + 5 * (number - 1), 6 + 5 * (number - 1))
  local run, record = {}, string.match(redis.call("HGET", runs, id) or "", "^1 (.*)$")
  for word in string.gmatch(record or "", "%S+") do run[#run + 1] = word end

  if run[2] == token then
    settle(id, run, ready, delayed, running)
    run[2], run[3] = "-", string.format("%d", run[3] - 1)
    run[#run] = nil
    if begun == "1" then run[9] = string.format("%d", run[9] + 1) end
    if run[3] == "0" and run[4] == "0" and run[9] == "0" and run[1] == "waiting" then
      redis.call("HDEL", runs, id) -- as if it had never been claimed
    else
      redis.call("HSET", runs, id, "1 " .. table.concat(run, " "))
    end
    if redis.call("LLEN", wake) == 0 then redis.call("RPUSH", wake, "1") end
    if begun == "1" then
      redis.call("INCR", cut)
      redis.call("PEXPIRE", cut, kept)
    end
    released = released + 1
  end
end
return released
