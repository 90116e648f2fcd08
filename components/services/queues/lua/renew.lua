-- Record that a worker is alive, and renew the leases of its tasks. A repeated call changes nothing.
-- KEYS    worker workers runs order queues...(running)
-- ARGV    worker_id remembered about claimed...(number id token lease)
-- USES    time run ahead
-- RETURNS the request to the worker, or ""; the ids whose claims it has lost; the ids that it must cancel
local key, lost, cancelled = worker .. worker_id, {}, {}

-- The first write needs no memory, so that a server that is out of memory runs the rest of the script.
redis.call("ZREMRANGEBYSCORE", workers, "-inf", NOW - remembered)
redis.call("HSET", key, "about", about)
redis.call("HSETNX", key, "started", text(MICROSECONDS))
redis.call("PEXPIRE", key, remembered)
redis.call("ZADD", workers, NOW, worker_id)
bring_back(workers, NOW)
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
