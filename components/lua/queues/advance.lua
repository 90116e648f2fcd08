-- One step of a worker: ack what it finished, promote what is due, take over what was abandoned, claim.
-- Repeated with the same request number it changes nothing and answers the same.
-- KEYS[1] tasks   HASH id -> record
-- KEYS[2] runs    HASH id -> run record: 1 (its format) state token starts first last ended score workers
-- KEYS[3] errors  HASH id -> JSON
-- KEYS[4] worker  HASH of the caller
-- KEYS[5] paused  SET of queues
-- KEYS[6] result  prefix of the result STRINGs, an id is appended
-- KEYS[7..] per queue: ready, delayed, running, dead, successful ZSETs, wake LIST
-- ARGV[1] worker id
-- ARGV[2] request number, one higher for each new request
-- ARGV[3] how many tasks are wanted, at most 1000
-- ARGV[4] lease, milliseconds
-- ARGV[5] how often a task may be started
-- ARGV[6] how long results are kept, milliseconds
-- ARGV[7] how many successful tasks of a queue are listed
-- ARGV[8] how long dead tasks are kept, milliseconds
-- ARGV[9] how many dead tasks of a queue are kept
-- ARGV[10] number of queues
-- ARGV[11..] per queue: name, share of what is wanted (0: none, the queue has acks only);
--            then per finished task, at most 1000: number of its queue, id, token, "s" (successful) or
--            "d" (dead), JSON
-- Returns now (microseconds), when to look again (or 0), {number of the queue, id, record, run record,
--         errors} of each claimed task, {ids that were no longer the caller's}
local tasks, runs, errors, worker, paused, result = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local worker_id, request, want, lease, max_starts = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5])
local result_ttl, successful_limit = ARGV[6], tonumber(ARGV[7])
local dead_ttl, dead_limit, queues = ARGV[8], tonumber(ARGV[9]), tonumber(ARGV[10])
local SPAN, BATCH = 2 ^ 43, 100 -- as in push.lua; how much of one chore is done in one call
local FINISHED = 11 + 2 * queues -- where the finished tasks begin
local SOON = 5000000 -- microseconds: an idle worker looks again by itself before

local time = redis.call("TIME")
local now = time[1] * 1000000 + time[2]
local now_ms = math.floor(now / 1000)
local token, claimed, lost = worker_id .. ":" .. request, {}, {}

local queue = {}
for number = 1, queues do
  local base = 7 + 6 * (number - 1)
  queue[number] = {
    number = number, name = ARGV[9 + 2 * number], share = tonumber(ARGV[10 + 2 * number]),
    ready = KEYS[base], delayed = KEYS[base + 1], running = KEYS[base + 2],
    dead = KEYS[base + 3], successful = KEYS[base + 4], wake = KEYS[base + 5], done = {},
  }
end

local function text(number) return string.format("%.0f", number) end

local function words(record)
  local run = {}
  for word in string.gmatch(string.match(record or "", "^1 (.*)$") or "", "%S+") do run[#run + 1] = word end
  return run
end

local function read_run(id) return words(redis.call("HGET", runs, id)) end

local function write_run(id, run) redis.call("HSET", runs, id, "1 " .. table.concat(run, " ")) end

local function bury(q, id, run)
  for part = 3, 7 do run[part] = run[part] or "0" end
  run[1], run[2], run[6] = "dead", "-", text(now)
  write_run(id, run)
  redis.call("ZADD", q.dead, now_ms, id)
end

local function many(hash, ids) return #ids > 0 and redis.call("HMGET", hash, unpack(ids)) or {} end

local function forget(ids)
  for _, hash in ipairs(#ids > 0 and { tasks, runs, errors } or {}) do redis.call("HDEL", hash, unpack(ids)) end
end

-- The tasks of a queue that were acked as successful.
local function succeed(q)
  local scored = {}
  for i, id in ipairs(q.done) do scored[2 * i - 1], scored[2 * i] = now_ms, id end
  redis.call("ZREM", q.running, unpack(q.done))
  redis.call("ZADD", q.successful, unpack(scored))
  redis.call("ZREMRANGEBYSCORE", q.successful, "-inf", now_ms - result_ttl)
  redis.call("ZREMRANGEBYRANK", q.successful, 0, -(successful_limit + 1))
  forget(q.done)
end

local function ack()
  local ids, acked = {}, {}
  for at = FINISHED, #ARGV, 5 do ids[#ids + 1] = ARGV[at + 1] end
  for i, run in ipairs(many(runs, ids)) do
    local number, id, held_by, outcome, json = unpack(ARGV, FINISHED + 5 * (i - 1), FINISHED + 5 * i - 1)
    local q, holder = queue[tonumber(number)], string.match(run or "", "^1 %S+ (%S+)")
    if holder ~= held_by or acked[id] then
      lost[#lost + 1] = id
    elseif outcome == "s" then
      redis.call("SET", result .. id, json, "PX", result_ttl)
      q.done[#q.done + 1] = id
    else
      redis.call("ZREM", q.running, id)
      redis.call("HSET", errors, id, json)
      bury(q, id, words(run))
    end
    acked[id] = acked[id] or holder == held_by
  end
  for _, q in ipairs(queue) do if #q.done > 0 then succeed(q) end end
end

local function promote(q)
  local due = redis.call("ZRANGEBYSCORE", q.delayed, "-inf", text(now), "WITHSCORES", "LIMIT", 0, BATCH)
  for i = 1, #due, 2 do
    local record = redis.call("HGET", tasks, due[i]) or ""
    local priority, due_first = string.match(record, "^1 %d+ %d+ (%-?%d+) ([01]) ")
    local rank = (100 - (priority or 0)) * 2 + 1 - (due_first or 0)
    redis.call("ZREM", q.delayed, due[i])
    redis.call("ZADD", q.ready, rank * SPAN + math.floor(due[i + 1] / 1000), due[i])
  end
end

local function take_over(q)
  for _, id in ipairs(redis.call("ZRANGEBYSCORE", q.running, "-inf", now_ms, "LIMIT", 0, BATCH)) do
    local run = read_run(id)
    redis.call("ZREM", q.running, id)
    -- A run record without a start and a place is not ours.
    if (tonumber(run[7]) and tonumber(run[3]) or max_starts) >= max_starts then
      bury(q, id, run)
    else
      run[1], run[2] = "waiting", "-"
      write_run(id, run)
      redis.call("ZADD", q.ready, run[7], id)
    end
  end
end

local function trim_dead(q)
  local old = redis.call("ZRANGEBYSCORE", q.dead, "-inf", now_ms - dead_ttl, "LIMIT", 0, BATCH)
  local excess = math.min(redis.call("ZCARD", q.dead) - dead_limit, BATCH)
  if #old == 0 and excess > 0 then old = redis.call("ZRANGE", q.dead, 0, excess - 1) end
  if #old > 0 then redis.call("ZREM", q.dead, unpack(old)) end
  forget(old)
end

local function claim(q, count)
  local popped = q.open and count > 0 and redis.call("ZPOPMIN", q.ready, count) or {}
  if #popped == 0 then return end
  local ids, leases, written = {}, {}, {}
  for i = 1, #popped, 2 do ids[#ids + 1] = popped[i] end
  for i, before in ipairs(many(runs, ids)) do
    local run = words(before)
    run[1], run[2], run[3] = "running", token, text((tonumber(run[3]) or 0) + 1)
    run[4], run[5], run[6], run[7] = run[4] or text(now), text(now), "0", text(popped[2 * i])
    run[#run + 1] = worker_id
    written[2 * i - 1], written[2 * i] = ids[i], "1 " .. table.concat(run, " ")
    leases[2 * i - 1], leases[2 * i] = now_ms + lease, ids[i]
    claimed[#claimed + 1] = q.number .. " " .. ids[i]
  end
  redis.call("HSET", runs, unpack(written))
  redis.call("ZADD", q.running, unpack(leases))
end

local function first(zset) return tonumber(redis.call("ZRANGE", zset, 0, 0, "WITHSCORES")[2]) or math.huge end

local before = redis.call("HMGET", worker, "request", "claimed", "lost")
if before[1] == request then
  for number, id in string.gmatch(before[2], "(%d+) (%S+)") do
    if read_run(id)[2] == token then claimed[#claimed + 1] = number .. " " .. id end
  end
  for id in string.gmatch(before[3], "%S+") do lost[#lost + 1] = id end
else
  ack()
  for _, q in ipairs(queue) do
    promote(q)
    take_over(q)
    trim_dead(q)
    q.open = redis.call("SISMEMBER", paused, q.name) == 0
  end
  for _, q in ipairs(queue) do claim(q, math.min(q.share, want - #claimed)) end
  for _, q in ipairs(queue) do claim(q, q.share > 0 and want - #claimed or 0) end
  local answer, late = table.concat(claimed, " "), table.concat(lost, " ")
  redis.call("HSET", worker, "request", request, "claimed", answer, "lost", late)
end

local again, full = math.huge, #claimed >= want
for _, q in ipairs(queue) do
  local next_look = math.min(first(q.delayed), first(q.running) * 1000)
  again = math.min(again, next_look)
  local left = q.open and redis.call("ZCARD", q.ready) > 0
  if full and (left or next_look < now + SOON) and redis.call("LLEN", q.wake) == 0 then
    redis.call("RPUSH", q.wake, "1")
  end
end

local work, ids = {}, {}
for i, entry in ipairs(claimed) do ids[i] = string.match(entry, "%S+$") end
local records, held, wrong = many(tasks, ids), many(runs, ids), many(errors, ids)
for i, id in ipairs(ids) do
  work[i] = { tonumber(string.match(claimed[i], "^%d+")), id, records[i] or "", held[i], wrong[i] or "" }
end
return { text(now), again < math.huge and text(again) or "0", work, lost }
