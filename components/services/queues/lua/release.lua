-- Give back claimed tasks that are not finished: to their old place, or delayed by a number of microseconds. The
-- start does not count as an attempt. If the function had begun, the start counts as cut off. A repeated call changes
-- nothing.
-- KEYS    runs queues...(ready delayed running wake cut)
-- ARGV    delay cut_kept claimed...(number id token has_begun)
-- USES    time rouse run
-- RETURNS how many were given back; the caller no longer held the claims of the others
delay = tonumber(delay)

-- A task that is being cancelled is not started again: its lease ends, and the next worker to notice makes it dead.
-- ZREM comes first, because it needs no memory: a server that is out of memory then runs the rest of the script.
local function settle(queue, id, run)
  redis.call("ZREM", queue.running, id)
  if run.state == "cancelling" then
    redis.call("ZADD", queue.running, 0, id)
    return
  end
  run.state = "waiting"
  if delay > 0 then
    redis.call("ZADD", queue.delayed, text(MICROSECONDS + delay), id)
  else
    redis.call("ZADD", queue.ready, run.place, id)
  end
end

local function give_back(queue, id, run, has_begun)
  settle(queue, id, run)
  run.token, run.starts, run.workers = "-", run.starts - 1, string.match(run.workers, "^(.*),") or ""
  if has_begun then
    run.cut = run.cut + 1
    redis.call("INCR", queue.cut)
    redis.call("PEXPIRE", queue.cut, cut_kept)
  end
  if run.starts == 0 and run.crashes == "0" and tonumber(run.cut) == 0 and run.state == "waiting" then
    redis.call("HDEL", runs, id) -- as if it had never been claimed
  else
    save_run(id, run)
  end
  rouse(queue.wake)
end

local released = 0
for _, task in ipairs(claimed) do
  local run = run_of(redis.call("HGET", runs, task.id))
  if run.token == task.token then
    give_back(queues[tonumber(task.number)], task.id, run, task.has_begun == "1")
    released = released + 1
  end
end
return released
