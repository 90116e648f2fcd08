-- Cancel tasks of a queue: waiting ones become dead, running ones are marked for their worker. A repeated call
-- returns the same.
-- KEYS    tasks runs uniques awaited ended ready delayed dead
-- ARGV    ids...
-- USES    bury run
-- RETURNS for each id: "cancelled"; "cancelling" if it runs, so that its worker will end it; or another word
local answer = {}
for at, id in ipairs(ids) do
  local run = run_of(redis.call("HGET", runs, id))
  if redis.call("ZREM", ready, id) + redis.call("ZREM", delayed, id) > 0 then
    bury(dead, id, run, "cancelled")
  elseif run.state == "running" then
    run.state = "cancelling"
    save_run(id, run)
  end
  answer[at] = run.state
end
return answer
