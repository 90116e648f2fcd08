-- Note that a worker is alive, and let what it runs stay its own. A repeated call changes nothing.
-- KEYS    worker workers runs order queues...(running)
-- ARGV    worker_id remembered about claimed...(number id token lease)
-- USES    time run
-- RETURNS what the worker is asked to do, or ""; the ids that are no longer its own; those that are to be cancelled
local key, lost, cancelled = worker .. worker_id, {}, {}

-- First a write that needs no memory: a full server lets the rest of the script pass after it.
redis.call("ZREMRANGEBYSCORE", workers, "-inf", NOW - remembered)
redis.call("HSET", key, "about", about)
redis.call("HSETNX", key, "started", text(MICROSECONDS))
redis.call("PEXPIRE", key, remembered)
redis.call("ZADD", workers, NOW, worker_id)
for _, task in ipairs(claimed) do
  local run = run_of(redis.call("HGET", runs, task.id))
  if run.token == task.token then
    redis.call("ZADD", queues[tonumber(task.number)].running, NOW + task.lease, task.id)
    if run.state == "cancelling" then cancelled[#cancelled + 1] = task.id end
  else
    lost[#lost + 1] = task.id
  end
end
return { redis.call("GET", order .. worker_id) or "", lost, cancelled }
