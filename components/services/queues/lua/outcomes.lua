-- Return what became of the tasks of the last ticks of periodic tasks. Only reads.
-- KEYS    ticked runs tasks result
-- ARGV    names...
-- USES    run
-- RETURNS for each name: for each of its tasks, the newest first, the id, the state, and the microseconds of its last
--         start and of its end, or 0. The state is that of its run, "successful", or "" if it is not kept any more
local MOST = 16384 -- bytes of a result in which the run is looked for

local function outcome(id)
  local stored = redis.call("GETRANGE", result .. id, 0, MOST - 1)
  if stored ~= "" then
    local record, ended = string.match(stored, "^[^\n]*\n[^\n]*\n([^\n]*)\n(%d+)\n")
    return { id, "successful", record and run_of(record).last or "0", ended or "0" }
  end
  local record = redis.call("HGET", runs, id)
  if not record then return { id, redis.call("HEXISTS", tasks, id) == 1 and "waiting" or "", "0", "0" } end
  local run = run_of(record)
  return { id, run.state, run.last, run.ended }
end

local answer = {}
for at, name in ipairs(names) do
  answer[at] = {}
  for id in string.gmatch(redis.call("HGET", ticked, name) or "", "%S+") do
    answer[at][#answer[at] + 1] = outcome(id)
  end
end
return answer
