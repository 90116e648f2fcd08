-- A worker's heartbeat: it is alive, and what it runs stays its own. Idempotent by nature.
-- KEYS[1] worker   HASH of the caller
-- KEYS[2] workers  ZSET id -> millisecond of the last heartbeat
-- KEYS[3] runs     HASH id -> run record
-- KEYS[4] order    STRING, what the caller was asked to do
-- KEYS[5..] the running ZSET of each queue
-- ARGV[1] worker id
-- ARGV[2] how long silent workers are remembered, milliseconds
-- ARGV[3] JSON of what the worker says of itself
-- ARGV[4..] per task the words: number of its queue, id, token, lease in milliseconds
-- Returns the order or "", {ids that are no longer the caller's}, {ids that are to be cancelled}
local worker, workers, runs, order = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local worker_id, remembered, about = ARGV[1], ARGV[2], ARGV[3]

local time = redis.call("TIME")
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local lost, cancelled = {}, {}

-- First a write that needs no memory: a full server lets the rest of the script pass after it.
redis.call("ZREMRANGEBYSCORE", workers, "-inf", now_ms - remembered)
redis.call("HSET", worker, "about", about)
redis.call("HSETNX", worker, "started", string.format("%.0f", time[1] * 1000000 + time[2]))
redis.call("PEXPIRE", worker, remembered)
redis.call("ZADD", workers, now_ms, worker_id)

for at = 4, #ARGV do
  local number, id, token, lease = string.match(ARGV[at], "^(%d+) (%S+) (%S+) (%d+)$")
  local state, held_by = string.match(redis.call("HGET", runs, id) or "", "^1 (%S+) (%S+)")
  if held_by == token then
    redis.call("ZADD", KEYS[4 + number], now_ms + lease, id)
    if state == "cancelling" then cancelled[#cancelled + 1] = id end
  else
    lost[#lost + 1] = id
  end
end
return { redis.call("GET", order) or "", lost, cancelled }
