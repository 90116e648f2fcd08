-- Count the tasks of all queues of a backend, and read what its workers say; at most 1000 of each. Only reads.
-- The last keys are the beginnings of those of each queue and worker.
-- KEYS    names workers paused worker ready delayed running dead successful cut
-- USES    time sizes
-- RETURNS now, in microseconds; name and sizes of each queue, in turn; id, millisecond of the last heartbeat and
--         facts of each worker, in turn
local MOST, all, seen = 1000, {}, {}
for _, name in ipairs(redis.call("SRANDMEMBER", names, MOST)) do
  local queue = {
    ready = ready .. name, delayed = delayed .. name, running = running .. name, dead = dead .. name,
    successful = successful .. name, cut = cut .. name,
  }
  all[#all + 1], all[#all + 2] = name, sizes_of(queue, name)
end
local beats = redis.call("ZREVRANGE", workers, 0, MOST - 1, "WITHSCORES")
for at = 1, #beats, 2 do
  local facts = redis.call("HMGET", worker .. beats[at], "about", "started")
  seen[#seen + 1], seen[#seen + 2], seen[#seen + 3] = beats[at], beats[at + 1], facts
end
return { text(MICROSECONDS), all, seen }
