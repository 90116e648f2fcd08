-- Do one step of a worker: ack what it has finished, promote what is due, take over what was abandoned, claim.
-- Repeated with the same request number, it changes nothing and returns the same.
-- *lease* is in milliseconds, for tasks that have none of their own. A task goes to the dead when the last of
-- *max_crashes* workers has died under it. At most *abandoned* tasks of each queue are taken over, and at most
-- *listed* successful ones are kept in its list. *turn* is how many tasks the caller has wanted before: dealing goes
-- on from there. *share* is how many of the wanted tasks fall to a queue on average; 0 asks for none. If the shares
-- add up to more than is wanted, the order is strict.
-- The value of an outcome: of "successful", the milliseconds to keep the result; of "dead" and "expired", the
-- microsecond when the task ended; of "retry", the microseconds until the next attempt. At most 1000 tasks are
-- wanted, and 1000 finished.
-- KEYS    tasks runs errors progress uniques awaited worker paused result ended active
--         queues...(ready delayed running dead successful wake)
-- ARGV    worker_id request wanted lease max_crashes listed abandoned turn asked...(name share)
--         finished...(number id token outcome value unique document)
-- USES    time rouse place task run ending bury forget
-- RETURNS now, in microseconds; when to look again, or 0; the number of the queue, id, record, run record and errors
--         of each claimed task; the ids that were no longer the caller's
wanted, abandoned, max_crashes = tonumber(wanted), tonumber(abandoned), tonumber(max_crashes)
-- PROMOTED: how many due tasks one call moves in all queues together, LEAST: how many of each queue, BYTES: how many
-- bytes of their records it reads; this takes a few milliseconds. HELD: if so many due tasks or fewer are left, a
-- queue gives no task until all of them have been moved, or a low priority would start before a high one. MANY: with
-- more queues than that, those where nothing waits or runs are asked no more. STARTS: of so many starts the workers
-- are kept. GOLDEN: its multiples are evenly spread. SOON: after so many microseconds an idle worker looks by itself.
local PROMOTED, LEAST, BYTES, HELD, MANY, STARTS = 1000, 10, 4194304, 100000, 100, 1000
local GOLDEN, SOON = 0.6180339887498949, 5000000
local me, own_token, claimed, lost = worker .. worker_id, worker_id .. ":" .. request, {}, {}

for at, queue in ipairs(queues) do
  queue.number, queue.name, queue.share = at, asked[at].name, tonumber(asked[at].share)
end

local function many(hash, ids) return #ids > 0 and redis.call("HMGET", hash, unpack(ids)) or {} end

-- Put a task where it waits for its next start.
local function put_back(zset, score, id, run)
  run.state, run.token = "waiting", "-"
  save_run(id, run)
  redis.call("ZADD", zset, score, id)
end

-- Move the tasks of a queue that were acked as successful. One whose lease had ended may be anywhere by now.
local function succeed(queue)
  local scored = {}
  for at, id in ipairs(queue.done) do scored[2 * at - 1], scored[2 * at] = NOW, id end
  for _, set in ipairs(queue.is_late and { "running", "ready", "delayed", "dead" } or { "running" }) do
    redis.call("ZREM", queue[set], unpack(queue.done))
  end
  redis.call("ZADD", queue.successful, unpack(scored))
  redis.call("ZREMRANGEBYRANK", queue.successful, 0, -(listed + 1))
  forget(queue.done)
end

local function finish(done, run)
  local queue, id = queues[tonumber(done.number)], done.id
  if done.outcome == "successful" then
    redis.call("SET", result .. id, done.document, "PX", done.value)
    queue.done = queue.done or {}
    queue.done[#queue.done + 1] = id
    return tell_end(id, done.unique)
  end
  redis.call("HSET", errors, id, done.document)
  redis.call("ZREM", queue.running, id)
  if done.outcome == "retry" and run.state == "running" then
    put_back(queue.delayed, text(MICROSECONDS + done.value), id, run)
  else
    local state = done.outcome == "expired" and "expired" or "dead"
    bury(queue.dead, id, run, state, done.outcome ~= "retry" and done.value)
  end
end

-- Return whether a run ended well after its lease, and nobody else has ended the task: what is done, is done.
local function is_late(done, run)
  local is_open = run.state == "waiting" or run.state == "running" or run.state == "crashed"
  return done.outcome == "successful" and is_open and run.crashes ~= "0"
end

local function ack()
  local ids, acked = {}, {}
  for at, done in ipairs(finished) do ids[at] = done.id end
  for at, record in ipairs(many(runs, ids)) do
    local done, run = finished[at], run_of(record)
    local is_mine = run.token == done.token
    if (is_mine or is_late(done, run)) and not acked[done.id] then -- of several acks of one claim the first counts
      acked[done.id] = true
      queues[tonumber(done.number)].is_late = queues[tonumber(done.number)].is_late or not is_mine
      finish(done, run)
    else
      lost[#lost + 1] = done.id
    end
  end
  for _, queue in ipairs(queues) do
    if queue.done then succeed(queue) end
  end
end

local function first(zset) return tonumber(redis.call("ZRANGE", zset, 0, 0, "WITHSCORES")[2]) or math.huge end

-- Move up to *most* due tasks of a queue to its ready ones, and return how many.
local function promote(queue, most)
  local due = redis.call("ZRANGEBYSCORE", queue.delayed, "-inf", text(MICROSECONDS), "WITHSCORES", "LIMIT", 0, most)
  local ids, scored, bytes = {}, {}, 0
  for at = 1, #due, 2 do
    local record = redis.call("HGET", tasks, due[at]) or ""
    local task = task_of(record) or { priority = 0, due_first = 0 }
    ids[#ids + 1] = due[at]
    scored[at], scored[at + 1] = place(task.priority, task.due_first, math.floor(due[at + 1] / 1000)), due[at]
    bytes = bytes + #record
    if bytes > BYTES then break end
  end
  if #ids > 0 then
    redis.call("ZREM", queue.delayed, unpack(ids))
    redis.call("ZADD", queue.ready, unpack(scored))
  end
  return #ids
end

-- Move due tasks, first each queue's part, and note which queues have more of them.
local function promote_all()
  local part, left = math.max(LEAST, math.floor(PROMOTED / math.max(1, #queues))), PROMOTED
  for _, queue in ipairs(queues) do
    queue.next_due = first(queue.delayed)
    queue.moved = queue.next_due <= MICROSECONDS and promote(queue, part) or 0
    left = left - queue.moved
  end
  for _, queue in ipairs(queues) do
    if queue.moved == part and left > 0 then left = left - promote(queue, left) end
    if queue.moved > 0 then
      queue.next_due = first(queue.delayed)
      local more = redis.call("ZCOUNT", queue.delayed, "-inf", text(MICROSECONDS))
      queue.is_held = more > 0 and more <= HELD
    end
  end
end

local function take_over(queue)
  queue.next_end = abandoned > 0 and first(queue.running) or math.huge
  if queue.next_end > NOW then return end
  for _, id in ipairs(redis.call("ZRANGEBYSCORE", queue.running, "-inf", NOW, "LIMIT", 0, abandoned)) do
    local run = run_of(redis.call("HGET", runs, id))
    -- Without a place it is no record of ours; without a token it was given back to be cancelled, and nobody died.
    local crashes = (tonumber(run.crashes) or 0) + (run.token == "-" and 0 or 1)
    local may_start = tonumber(run.place) and crashes < max_crashes and run.state ~= "cancelling"
    run.crashes = crashes
    redis.call("ZREM", queue.running, id)
    if may_start then put_back(queue.ready, run.place, id, run) else bury(queue.dead, id, run, "crashed") end
  end
  queue.next_end = first(queue.running)
end

local function count_of(field) return tonumber(string.match(field, "^%d+$") or 0) end

-- Return the run record of a task that is claimed from a place among the ready.
local function start(record, at)
  local run = run_of(record)
  run.format, run.state, run.token, run.ended, run.place = "1", "running", own_token, "0", text(at)
  run.starts, run.crashes, run.cut = count_of(run.starts) + 1, count_of(run.crashes), count_of(run.cut)
  run.last = text(MICROSECONDS)
  if run.first == "" then run.first = run.last end
  if run.workers == "" then
    run.workers = worker_id
  else
    if #run.workers > STARTS and select(2, string.gsub(run.workers, ",", "")) >= STARTS - 1 then
      run.workers = string.gsub(run.workers, "^[^,]*,", "")
    end
    run.workers = run.workers .. "," .. worker_id
  end
  return write_run(run)
end

-- Claim tasks of a queue, and return how many there were. An id with blanks, or one that is not ASCII, is not
-- ours: it would break the answer and the worker, so it goes to the dead at once.
local function claim(queue, count)
  local popped = count > 0 and redis.call("ZPOPMIN", queue.ready, count) or {}
  local ids, places, written = {}, {}, {}
  for at = 1, #popped, 2 do
    if string.find(popped[at], "^[\33-\126]+$") then
      ids[#ids + 1], places[#places + 1] = popped[at], popped[at + 1]
    else
      redis.call("ZADD", queue.dead, NOW, popped[at])
    end
  end
  for at, record in ipairs(many(runs, ids)) do
    written[2 * at - 1], written[2 * at] = ids[at], start(record, places[at])
    claimed[#claimed + 1] = { number = queue.number, id = ids[at] }
  end
  if #written > 0 then redis.call("HSET", runs, unpack(written)) end
  return #popped / 2
end

-- Return the queues that tasks may be claimed from, and whether their order is strict.
local function open_queues()
  local open, all = {}, 0
  for _, queue in ipairs(queues) do all = all + queue.share end
  local is_strict = all > wanted + 0.5
  for _, queue in ipairs(queues) do
    if queue.is_held and queue.share > 0 and is_strict then break end
    local is_asked = queue.is_open and not queue.is_held and queue.share > 0
    if is_asked and redis.call("ZCARD", queue.ready) > 0 then open[#open + 1] = queue end
  end
  return open, is_strict
end

-- Claim what is still wanted from the open queues, each its part, and return those that may have more.
local function deal_round(open, is_strict)
  local left, total, are_alike, rest = wanted - #claimed, 0, not is_strict, {}
  for _, queue in ipairs(open) do
    total, are_alike = total + queue.share, are_alike and queue.share == open[1].share
  end
  local sum = turn * GOLDEN % 1
  local last = math.floor(sum) + left
  for at, queue in ipairs(open) do
    local before, part = math.floor(sum), left
    sum = sum + queue.share * left / total
    if are_alike then
      part = math.floor((left - 1 - (at - 1 - turn) % #open) / #open) + 1 -- of the turns that are left
    elseif not is_strict then
      part = (at < #open and math.floor(sum) or last) - before
    end
    part = math.min(part, wanted - #claimed)
    if claim(queue, part) == part then rest[#rest + 1] = queue end
  end
  return rest
end

-- Deal what is wanted among the queues that have tasks: in strict order, or in proportion to their shares. What a
-- queue cannot fill is dealt to the others, again in proportion. Queues with equal shares take turns, and each call
-- goes on where the last one ended. Other parts are rounded, in each call from another start, so that over time each
-- queue gets exactly its share.
local function deal()
  local open, is_strict = open_queues()
  while #claimed < wanted and #open > 0 do open = deal_round(open, is_strict) end
end

-- Return when to look again, and wake another worker if there is more to do than this one wanted.
local function next_look()
  local again, is_full = math.huge, #claimed >= wanted
  for _, queue in ipairs(queues) do
    if #queues > MANY and redis.call("EXISTS", queue.ready, queue.delayed, queue.running) == 0 then
      redis.call("SREM", active, queue.name)
      redis.call("DEL", queue.wake)
    end
    if queue.has_claimed or not queue.next_end then queue.next_end = first(queue.running) end
    local next_end = abandoned > 0 and queue.next_end * 1000 or math.huge
    local next_event = math.min(queue.next_due or first(queue.delayed), next_end)
    again = math.min(again, next_event)
    local is_soon = next_event < MICROSECONDS + SOON
    if is_full and (is_soon or queue.is_open and redis.call("ZCARD", queue.ready) > 0) then rouse(queue.wake) end
  end
  return again < math.huge and text(again) or "0"
end

-- A full server refuses a script whose first write needs memory; a script that has begun to write may go on. This
-- first write changes nothing and needs none, so that tasks are handed in and claimed however full it is.
redis.call("HDEL", me, "")

local before = redis.call("HMGET", me, "request", "claimed", "lost")
if before[1] == request then -- it is repeated
  for number, id in string.gmatch(before[2], "(%d+) ([^ ]+)") do
    local is_mine = run_of(redis.call("HGET", runs, id)).token == own_token
    if is_mine then claimed[#claimed + 1] = { number = tonumber(number), id = id } end
  end
  for id in string.gmatch(before[3], "[^ ]+") do lost[#lost + 1] = id end
else
  if #finished > 0 then ack() end
  promote_all()
  for _, queue in ipairs(queues) do
    take_over(queue)
    queue.is_open = redis.call("SISMEMBER", paused, queue.name) == 0
  end
  deal()
  local words = {}
  for at, each in ipairs(claimed) do words[at] = each.number .. " " .. each.id end
  redis.call("HSET", me, "request", request, "claimed", table.concat(words, " "), "lost", table.concat(lost, " "))
end

-- Lease what was claimed.
local work, ids = {}, {}
for at, each in ipairs(claimed) do ids[at] = each.id end
local records, held, wrong = many(tasks, ids), many(runs, ids), many(errors, ids)
for at, id in ipairs(ids) do
  local queue, task = queues[claimed[at].number], task_of(records[at])
  local own = task and tonumber(task.lease) or 0
  redis.call("ZADD", queue.running, NOW + (own > 0 and own or lease), id)
  queue.has_claimed, work[at] = true, { queue.number, id, records[at] or "", held[at], wrong[at] or "" }
end
return { text(MICROSECONDS), next_look(), work, lost }
