-- USES    time task run ending
-- Put a task among the dead, as cancelled if somebody asked for that.
local function bury(dead, id, run, state, ended_at)
  local task = task_of(redis.call("HGET", tasks, id))
  run.state = run.state == "cancelling" and "cancelled" or state
  run.token, run.ended = "-", ended_at or text(MICROSECONDS)
  save_run(id, run)
  redis.call("ZADD", dead, NOW, id)
  tell_end(id, task and task.unique or "-")
end
