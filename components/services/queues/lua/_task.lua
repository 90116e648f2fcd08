-- A task as it was pushed. After these fields come a blank, the name of its queue, a line feed and its body.
-- RECORD  task: format enqueued due priority due_first lease unique
-- Return what the record of a task says, or nil if this release has not written it.
local function task_of(record)
  local task = read_task(record or "")
  local is_ours = task.format == "1" and task.unique ~= "" and (task.due_first == "0" or task.due_first == "1")
    and string.find(task.lease, "^%d+$") and string.find(task.priority, "^%-?%d+$")
  return is_ours and task or nil
end
-- Return the microsecond at which the task of a record expires, or nil. See CheckedTask._call() in new_task.py.
local function expiry_of(record)
  local task = task_of(record)
  local sign, number = string.match(record, '^[^\n]*\n{"task":"[^"]*","expires":"(%+?)(%d+)"')
  if not task or not sign then return nil end
  return sign == "+" and math.max(task.enqueued, task.due) + number or tonumber(number)
end
