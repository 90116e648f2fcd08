-- Push tasks: runnable at once, or at an instant. Repeated, each task is still stored once.
-- KEYS[1] tasks        HASH id -> record
-- KEYS[2] names        SET of queues
-- KEYS[3] wake-all     LIST that wakes workers of all queues
-- KEYS[4] wake-poller  LIST that wakes pollers
-- KEYS[5..] per queue: ready ZSET, delayed ZSET, wake LIST; then per task: result STRING
-- ARGV[1] number of queues
-- ARGV[2..] the queues; then per task: number of its queue, id, due, priority, due_first, body.
--           due is 0 (now), microseconds of the epoch, or + and microseconds from now
-- Returns the microsecond at which each task was enqueued
local tasks, names, wake_all, wake_poller = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local queues = tonumber(ARGV[1])
local FORMAT, SPAN = "1", 2 ^ 43 -- SPAN: milliseconds of one rank, until the year 2248

local time = redis.call("TIME")
local now = time[1] * 1000000 + time[2]

local function wake(list)
  if redis.call("LLEN", list) == 0 then redis.call("RPUSH", list, "1") end
end

local enqueued = {}
for at = 2 + queues, #ARGV, 6 do
  local number, id, due, priority, due_first, body = unpack(ARGV, at, at + 5)
  local queue, base = ARGV[1 + number], 5 + 3 * (number - 1)
  local ready, delayed, queue_wake = KEYS[base], KEYS[base + 1], KEYS[base + 2]
  local result = KEYS[5 + 3 * queues + #enqueued]
  local stored = redis.call("HGET", tasks, id)

  if stored then
    enqueued[#enqueued + 1] = string.match(stored, "^%d+ (%d+)")
  else
    enqueued[#enqueued + 1] = string.format("%.0f", now)
    if redis.call("EXISTS", result) == 0 then
      local due_at = tonumber(due)
      if string.sub(due, 1, 1) == "+" then due_at = now + due_at end
      local head = { FORMAT, enqueued[#enqueued], string.format("%.0f", due_at), priority, due_first, queue }
      redis.call("HSET", tasks, id, table.concat(head, " ") .. "\n" .. body)
      if redis.call("SADD", names, queue) == 1 then wake(wake_all) end
      if due_at > now then
        redis.call("ZADD", delayed, due_at, id)
        if redis.call("ZRANGE", delayed, 0, 0)[1] == id then
          wake(queue_wake)
          wake(wake_poller)
        end
      else
        redis.call("ZADD", ready, ((100 - priority) * 2 + 1) * SPAN + math.floor(now / 1000), id)
        wake(queue_wake)
      end
    end
  end
end
return enqueued
