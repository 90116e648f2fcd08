-- What workers did with a task, from its first claim on. The state is waiting, running, cancelling, dead, crashed,
-- cancelled or expired; first, last and ended are microseconds; place is its score among the ready; starts that were
-- cut off are counted in cut; commas separate the workers.
-- RECORD  run: format state token starts crashes first last ended place cut workers
-- Return what a run record says. If there is none, or this release has not written it, all fields are empty.
local function run_of(record)
  local run = read_run(record or "")
  return (run.format == "1" or not record) and run or read_run("")
end

-- Store a run record. A field that should be a number and is not becomes 0.
local function save_run(id, run)
  run.format = "1"
  for _, field in ipairs({ "starts", "crashes", "first", "last", "ended", "place", "cut" }) do
    if not string.find(run[field], "^%d+$") then run[field] = "0" end
  end
  redis.call("HSET", runs, id, write_run(run))
end
