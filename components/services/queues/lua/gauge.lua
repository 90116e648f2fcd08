-- Count the tasks of all queues of a backend and those parked, and read what its workers say. Only reads.
-- At most 1000 queues, workers, limits and parked tasks are looked at.
-- The last keys are the beginnings of those of each queue and worker.
-- KEYS    names workers paused runs limits limited parked worker ready delayed running dead successful cut trimmed
-- USES    time sizes
-- RETURNS now, in microseconds; name and sizes of each queue, in turn; id, millisecond of the last heartbeat and
--         facts of each worker, in turn; and limit and number of parked tasks, in turn
local MOST, all, seen, full = 1000, {}, {}, {}
for _, name in ipairs(redis.call("SRANDMEMBER", names, MOST)) do
  local queue = {
    ready = ready .. name, delayed = delayed .. name, running = running .. name, dead = dead .. name,
    successful = successful .. name, cut = cut .. name, trimmed = trimmed .. name,
  }
  all[#all + 1], all[#all + 2] = name, sizes_of(queue, name)
end
local beats = redis.call("ZREVRANGE", workers, 0, MOST - 1, "WITHSCORES")
for at = 1, #beats, 2 do
  local facts = redis.call("HMGET", worker .. beats[at], "about", "started")
  seen[#seen + 1], seen[#seen + 2], seen[#seen + 3] = beats[at], beats[at + 1], facts
end
local left = MOST
for _, limit in ipairs(redis.call("SRANDMEMBER", limits, MOST)) do
  local waiting = 0
  for _, name in ipairs(left > 0 and redis.call("ZRANGE", limited .. limit, 0, left - 1) or {}) do
    local ids = left > 0 and redis.call("ZRANGE", parked .. limit .. ":" .. name, 0, left - 1) or {}
    left = left - #ids
    for _, id in ipairs(ids) do
      if redis.call("ZSCORE", delayed .. name, id) then waiting = waiting + 1 end
    end
  end
  if waiting > 0 then full[#full + 1], full[#full + 2] = limit, waiting end
end
return { text(MICROSECONDS), all, seen, full }
