-- One step of a worker: ack what it finished, promote what is due, take over what was abandoned, claim.
-- Repeated with the same request number it changes nothing and answers the same.
-- KEYS[1] tasks     HASH id -> record
-- KEYS[2] runs      HASH id -> run record, 1 (its format) and the words state token starts crashes first last ended
--                  score, how many starts were cut off, and the workers
-- KEYS[3] errors    HASH id -> JSON
-- KEYS[4] progress  HASH id -> JSON
-- KEYS[5] uniques   HASH unique key -> id
-- KEYS[6] awaited   SET of ids whose end somebody waits for
-- KEYS[7] worker    HASH of the caller
-- KEYS[8] paused    SET of queues
-- KEYS[9] result    prefix of the result STRINGs, an id is appended
-- KEYS[10] ended    prefix of the LISTs that tell who waits, an id is appended
-- KEYS[11] active   SET of queues that workers of all queues ask
-- KEYS[12..] per queue: ready, delayed, running, dead, successful ZSETs, wake LIST
-- ARGV[1] worker id
-- ARGV[2] request number, one higher for each new request
-- ARGV[3] how many tasks are wanted, at most 1000
-- ARGV[4] lease, milliseconds, of tasks that have none of their own
-- ARGV[5] under how many dead workers a task dies itself
-- ARGV[6] how many successful tasks of a queue are listed
-- ARGV[7] how many abandoned tasks of each queue may be taken over
-- ARGV[8] number of queues
-- ARGV[9] from where what is wanted is dealt: how many tasks the caller has wanted before
-- ARGV[10..] per queue: name, how many of the wanted tasks fall to it on average (0: none, it has acks only; if all
--           together are more than are wanted, the queues are asked in strict order);
--           then per finished task, at most 1000: the words number of its queue, id, token, outcome, number,
--           unique key or "-"; and a document. The outcomes: "s" successful, number: milliseconds to keep the
--           result; "d" dead, number: when it ended, microseconds; "r" to be retried, number: microseconds until then
-- Returns now (microseconds), when to look again (or 0), {number of the queue, id, record, run record,
--         errors} of each claimed task, {ids that were no longer the caller's}
local tasks, runs, errors, progress, uniques, awaited = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local worker, paused, result, ended, active = KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11]
local worker_id, request, want, lease, max_crashes = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5])
local listed_limit, abandoned, queues = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local turn = tonumber(ARGV[9])
-- SPAN: as in push.lua. FINISHED: where the finished tasks begin. SOON: microseconds, before which an idle worker
-- looks by itself. TOLD: milliseconds that who waits for an end has to notice it.
local SPAN, FINISHED, SOON, TOLD = 2 ^ 43, 10 + 2 * queues, 5000000, 60000
-- PROMOTED: how many due tasks one call moves, in all queues (and LEAST of each), and how many bytes of records it
-- reads for that: a few milliseconds. HELD: with how many more that are due a queue gives no task before all of them
-- have been moved, or a low priority would start before a high one. MANY: with more queues than that, those where
-- nothing waits or runs are asked no more. STARTS: of so many the workers are known. GOLDEN: its multiples are evenly
-- spread.
local PROMOTED, LEAST, BYTES, HELD, MANY, STARTS = 1000, 10, 4194304, 100000, 100, 1000
local GOLDEN = 0.6180339887498949

local time = redis.call("TIME")
local now, now_ms = time[1] * 1000000 + time[2], time[1] * 1000 + math.floor(time[2] / 1000)
local token, claimed, lost = worker_id .. ":" .. request, {}, {}

-- A full server refuses a script whose first write needs memory; a script that has begun to write may go on. This
-- first write changes nothing and needs none, so that tasks are handed in and claimed however full it is.
redis.call("HDEL", worker, "")

local queue = {}
for number = 1, queues do
  local base = 12 + 6 * (number - 1)
  queue[number] = {
    number = number, name = ARGV[8 + 2 * number], share = tonumber(ARGV[9 + 2 * number]),
    ready = KEYS[base], delayed = KEYS[base + 1], running = KEYS[base + 2],
    dead = KEYS[base + 3], successful = KEYS[base + 4], wake = KEYS[base + 5], done = {},
  }
end

local function text(number) return string.format("%.0f", number) end

local function split(line)
  local words = {}
  for word in string.gmatch(line, "%S+") do words[#words + 1] = word end
  return words
end

local function read_run(record) return split(string.match(record or "", "^1 (.*)$") or "") end

local function count_of(word) return tonumber(string.match(word or "", "^%d+$") or 0) end

local function write_run(id, run) redis.call("HSET", runs, id, "1 " .. table.concat(run, " ")) end

local function many(hash, ids) return #ids > 0 and redis.call("HMGET", hash, unpack(ids)) or {} end

-- Priority, due_first, lease and unique key of a task record.
local function head(record) return string.match(record or "", "^1 %d+ %S+ (%-?%d+) ([01]) (%d+) (%S+) ") end

-- A task has ended: its unique key is free, and who waits for the end wakes.
local function tell(id, unique)
  if unique ~= "-" and redis.call("HGET", uniques, unique) == id then redis.call("HDEL", uniques, unique) end
  if redis.call("SREM", awaited, id) == 1 then
    redis.call("RPUSH", ended .. id, "1")
    redis.call("PEXPIRE", ended .. id, TOLD)
  end
end

local function bury(q, id, run, state, ended_at)
  local _, _, _, unique = head(redis.call("HGET", tasks, id))
  for part = 3, 9 do run[part] = run[part] or "0" end
  run[1], run[2], run[7] = run[1] == "cancelling" and "cancelled" or state, "-", ended_at or text(now)
  write_run(id, run)
  redis.call("ZADD", q.dead, now_ms, id)
  tell(id, unique or "-")
end

-- Put a task where it waits for its next start.
local function put_back(zset, score, id, run)
  run[1], run[2] = "waiting", "-"
  write_run(id, run)
  redis.call("ZADD", zset, score, id)
end

-- The tasks of a queue that were acked as successful.
local function succeed(q)
  local scored = {}
  for i, id in ipairs(q.done) do scored[2 * i - 1], scored[2 * i] = now_ms, id end
  redis.call("ZREM", q.running, unpack(q.done))
  redis.call("ZADD", q.successful, unpack(scored))
  redis.call("ZREMRANGEBYRANK", q.successful, 0, -(listed_limit + 1))
  for _, hash in ipairs({ tasks, runs, errors, progress }) do redis.call("HDEL", hash, unpack(q.done)) end
end

local function ack()
  local finished, ids, acked = {}, {}, {}
  for at = FINISHED, #ARGV, 2 do finished[#finished + 1] = split(ARGV[at]) end
  for i, words in ipairs(finished) do ids[i] = words[2] end
  for i, record in ipairs(many(runs, ids)) do
    local of_queue, id, held_by, outcome, number, unique = unpack(finished[i])
    local q, run, document = queue[tonumber(of_queue)], read_run(record), ARGV[FINISHED + 2 * i - 1]
    acked[id] = acked[id] or run[2] == held_by and i -- of several acks of one claim the first counts
    if acked[id] ~= i then
      lost[#lost + 1] = id
    elseif outcome == "s" then
      redis.call("SET", result .. id, document, "PX", number)
      q.done[#q.done + 1] = id
      tell(id, unique)
    else
      local again_at = outcome == "r" and run[1] == "running" and text(now + number)
      local ended_at = outcome == "d" and number
      redis.call("HSET", errors, id, document)
      redis.call("ZREM", q.running, id)
      if again_at then put_back(q.delayed, again_at, id, run) else bury(q, id, run, "dead", ended_at) end
    end
  end
  for _, q in ipairs(queue) do if #q.done > 0 then succeed(q) end end
end

-- Move tasks of a queue that are due to where they are claimed from; returns how many.
local function promote(q, most)
  local due = redis.call("ZRANGEBYSCORE", q.delayed, "-inf", text(now), "WITHSCORES", "LIMIT", 0, most)
  local ids, scored, bytes = {}, {}, 0
  for i = 1, #due, 2 do
    local record = redis.call("HGET", tasks, due[i])
    local priority, due_first = head(record)
    local rank = (100 - (priority or 0)) * 2 + 1 - (due_first or 0)
    ids[#ids + 1] = due[i]
    scored[i], scored[i + 1] = rank * SPAN + math.floor(due[i + 1] / 1000), due[i]
    bytes = bytes + #(record or "")
    if bytes > BYTES then break end
  end
  if #ids > 0 then
    redis.call("ZREM", q.delayed, unpack(ids))
    redis.call("ZADD", q.ready, unpack(scored))
  end
  return #ids
end

-- Move what is due, each queue's part first, and note which queues have more that is due.
local function promote_all()
  local part, left = math.max(LEAST, math.floor(PROMOTED / math.max(1, queues))), PROMOTED
  for _, q in ipairs(queue) do
    q.moved = promote(q, part)
    left = left - q.moved
  end
  for _, q in ipairs(queue) do
    if q.moved == part and left > 0 then left = left - promote(q, left) end
    if q.moved > 0 then
      local more = redis.call("ZCOUNT", q.delayed, "-inf", text(now))
      q.held = more > 0 and more <= HELD
    end
  end
end

local function take_over(q)
  for _, id in ipairs(redis.call("ZRANGEBYSCORE", q.running, "-inf", now_ms, "LIMIT", 0, abandoned)) do
    local run = read_run(redis.call("HGET", runs, id))
    -- Without a place it is no record of ours; without a token it was given back to be cancelled, and nobody died.
    local place, crashes = tonumber(run[8]), (tonumber(run[4]) or 0) + (run[2] == "-" and 0 or 1)
    local again = place and crashes < max_crashes and run[1] ~= "cancelling"
    run[4] = text(crashes)
    redis.call("ZREM", q.running, id)
    if again then put_back(q.ready, run[8], id, run) else bury(q, id, run, "crashed") end
  end
end

-- Claim tasks of a queue; returns how many there were. An id with blanks or other than ASCII is none of ours: it
-- would break the answer and the worker, and goes to the dead at once.
local function claim(q, count)
  local popped = count > 0 and redis.call("ZPOPMIN", q.ready, count) or {}
  local ids, places, written = {}, {}, {}
  for i = 1, #popped, 2 do
    if string.find(popped[i], "^[\33-\126]+$") then
      ids[#ids + 1], places[#places + 1] = popped[i], popped[i + 1]
    else
      redis.call("ZADD", q.dead, now_ms, popped[i])
    end
  end
  for i, before in ipairs(many(runs, ids)) do
    local run = read_run(before)
    run[1], run[2], run[3], run[4] = "running", token, text(count_of(run[3]) + 1), text(count_of(run[4]))
    run[5], run[6], run[7], run[8] = run[5] or text(now), text(now), "0", text(places[i])
    run[9] = text(count_of(run[9]))
    if #run >= 9 + STARTS then table.remove(run, 10) end
    run[#run + 1] = worker_id
    written[2 * i - 1], written[2 * i] = ids[i], "1 " .. table.concat(run, " ")
    claimed[#claimed + 1] = q.number .. " " .. ids[i]
  end
  if #written > 0 then redis.call("HSET", runs, unpack(written)) end
  return #popped / 2
end

-- Deal what is wanted among the queues that have tasks: in strict order, or to each in proportion to its share, and
-- what a queue cannot fill to the others, again in proportion. Where the shares are alike, the queues have turns, and
-- one call goes on where the last one ended. Else the parts are whole numbers that from call to call begin elsewhere,
-- so that over time each queue gets exactly its share.
local function deal()
  local open, all = {}, 0
  for _, q in ipairs(queue) do all = all + q.share end
  local is_strict = all > want + 0.5
  for _, q in ipairs(queue) do
    if q.held and q.share > 0 and is_strict then break end
    local has_some = q.open and not q.held and q.share > 0 and redis.call("ZCARD", q.ready) > 0
    if has_some then open[#open + 1] = q end
  end
  while #claimed < want and #open > 0 do
    local left, total, alike, rest = want - #claimed, 0, not is_strict, {}
    for _, q in ipairs(open) do
      total, alike = total + q.share, alike and q.share == open[1].share
    end
    local sum = turn * GOLDEN % 1
    local last = math.floor(sum) + left
    for i, q in ipairs(open) do
      local before, part = math.floor(sum), left
      sum = sum + q.share * left / total
      if alike then
        part = math.floor((left - 1 - (i - 1 - turn) % #open) / #open) + 1 -- of the turns that are left
      elseif not is_strict then
        part = (i < #open and math.floor(sum) or last) - before
      end
      part = math.min(part, want - #claimed)
      if claim(q, part) == part then rest[#rest + 1] = q end -- it may have more
    end
    open = rest
  end
end

local function first(zset) return tonumber(redis.call("ZRANGE", zset, 0, 0, "WITHSCORES")[2]) or math.huge end

local before = redis.call("HMGET", worker, "request", "claimed", "lost")
if before[1] == request then
  for number, id in string.gmatch(before[2], "(%d+) (%S+)") do
    if read_run(redis.call("HGET", runs, id))[2] == token then claimed[#claimed + 1] = number .. " " .. id end
  end
  lost = split(before[3])
else
  ack()
  promote_all()
  for _, q in ipairs(queue) do
    take_over(q)
    q.open = redis.call("SISMEMBER", paused, q.name) == 0
  end
  deal()
  redis.call("HSET", worker, "request", request, "claimed", table.concat(claimed, " "))
  redis.call("HSET", worker, "lost", table.concat(lost, " "))
end

local work, ids = {}, {}
for i, entry in ipairs(claimed) do ids[i] = string.match(entry, "%S+$") end
local records, held, wrong = many(tasks, ids), many(runs, ids), many(errors, ids)
for i, id in ipairs(ids) do
  local number = tonumber(string.match(claimed[i], "^%d+"))
  local _, _, own = head(records[i])
  redis.call("ZADD", queue[number].running, now_ms + ((tonumber(own) or 0) > 0 and own or lease), id)
  work[i] = { number, id, records[i] or "", held[i], wrong[i] or "" }
end

local again, full = math.huge, #claimed >= want
for _, q in ipairs(queue) do
  if queues > MANY and redis.call("EXISTS", q.ready, q.delayed, q.running) == 0 then
    redis.call("SREM", active, q.name)
    redis.call("DEL", q.wake)
  end
  local next_look = math.min(first(q.delayed), abandoned > 0 and first(q.running) * 1000 or math.huge)
  again = math.min(again, next_look)
  local left = q.open and redis.call("ZCARD", q.ready) > 0
  if full and (left or next_look < now + SOON) and redis.call("LLEN", q.wake) == 0 then
    redis.call("RPUSH", q.wake, "1")
  end
end
return { text(now), again < math.huge and text(again) or "0", work, lost }
