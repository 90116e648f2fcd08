-- Push tasks: runnable at once, or at an instant. Repeated, each task is still stored once.
-- KEYS[1] tasks        HASH id -> record
-- KEYS[2] names        SET of queues
-- KEYS[3] wake-all     LIST that wakes workers of all queues
-- KEYS[4] wake-poller  LIST that wakes pollers
-- KEYS[5] uniques      HASH unique key -> id
-- KEYS[6] periodic     ZSET tick name by the microsecond of the last tick
-- KEYS[7] active       SET of queues that workers of all queues ask
-- KEYS[8..] per queue: ready ZSET, delayed ZSET, wake LIST; then per task: result STRING
-- ARGV[1] number of queues
-- ARGV[2..] the queues; then per task: the words number of its queue, id, due, priority, due_first, lease, unique key
--           or "-", tick or 0, limit or 0, tick name; and its body. due is 0 (now), microseconds of the epoch, or +
--           and microseconds from now; lease is milliseconds or 0; tick and limit are microseconds of the epoch:
--           a last tick later than the limit was taken by a clock that had jumped ahead, and counts as none
-- Returns {the microsecond at which each task was enqueued; instead, "=" and the id of the unfinished task that has
--         its unique key, or "" if the tick was taken}, {tick name, last tick, ... of those that counted as none}
local tasks, names, wake_all, wake_poller, uniques, periodic = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local active, queues = KEYS[7], tonumber(ARGV[1])
local FORMAT, SPAN = "1", 2 ^ 43 -- SPAN: milliseconds of one rank, until the year 2248
local WORDS = "^(%d+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) ?(.*)$"

local time = redis.call("TIME")
local now = time[1] * 1000000 + time[2]
local now_text = string.format("%.0f", now)

local function wake(list)
  if redis.call("LLEN", list) == 0 then redis.call("RPUSH", list, "1") end
end

local function place(base, id, priority, due_at)
  local ready, delayed, queue_wake = unpack(KEYS, base, base + 2)
  if due_at <= now then
    redis.call("ZADD", ready, ((100 - priority) * 2 + 1) * SPAN + math.floor(now / 1000), id)
    wake(queue_wake)
  elseif redis.call("ZADD", delayed, due_at, id) and redis.call("ZRANGE", delayed, 0, 0)[1] == id then
    wake(queue_wake)
    wake(wake_poller)
  end
end

local enqueued, ahead = {}, {}
for at = 2 + queues, #ARGV, 2 do
  local number, id, due, priority, due_first, lease, unique, tick, limit, name = string.match(ARGV[at], WORDS)
  local queue, result = ARGV[1 + number], KEYS[8 + 3 * queues + #enqueued]
  local stored, rival = redis.call("HGET", tasks, id), unique ~= "-" and redis.call("HGET", uniques, unique)
  local last = tick ~= "0" and redis.call("ZSCORE", periodic, name)
  local jumped = last and limit ~= "0" and tonumber(last) > tonumber(limit)
  local ticked = last and not jumped and tonumber(last) >= tonumber(tick)
  local answer = stored and string.match(stored, "^%d+ (%d+)") or redis.call("EXISTS", result) == 1 and now_text
    or rival and redis.call("HEXISTS", tasks, rival) == 1 and "=" .. rival or ticked and ""

  if jumped then ahead[#ahead + 1], ahead[#ahead + 2] = name, last end
  if tick ~= "0" and not ticked then redis.call("ZADD", periodic, tick, name) end -- also where a rival stands for it
  if not answer then
    local due_at = tonumber(due)
    if string.sub(due, 1, 1) == "+" then
      due_at = due_at + now
      due = string.format("%.0f", due_at)
    end
    local head = { FORMAT, now_text, due, priority, due_first, lease, unique, queue }
    redis.call("HSET", tasks, id, table.concat(head, " ") .. "\n" .. ARGV[at + 1])
    if unique ~= "-" then redis.call("HSET", uniques, unique, id) end
    redis.call("SADD", names, queue)
    if redis.call("SADD", active, queue) == 1 then wake(wake_all) end
    place(8 + 3 * (number - 1), id, priority, due_at)
  end
  enqueued[#enqueued + 1] = answer or now_text
end
return { enqueued, ahead }
