-- A worker's heartbeat: it is alive, and what it runs stays its own. Idempotent by nature.
-- KEYS[1] worker   HASH of the caller
-- KEYS[2] workers  ZSET id -> millisecond of the last heartbeat
-- KEYS[3] runs     HASH id -> run record
-- KEYS[4..] the running ZSET of each queue
-- ARGV[1] worker id
-- ARGV[2] lease, milliseconds
-- ARGV[3] how long silent workers are remembered, milliseconds
-- ARGV[4] JSON of what the worker says of itself
-- ARGV[5..] per task: number of its queue, id, token
-- Returns the ids that are no longer the caller's
local worker, workers, runs = KEYS[1], KEYS[2], KEYS[3]
local worker_id, lease, remembered, about = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local time = redis.call("TIME")
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local lost = {}

redis.call("HSET", worker, "about", about)
redis.call("HSETNX", worker, "started", string.format("%.0f", time[1] * 1000000 + time[2]))
redis.call("PEXPIRE", worker, remembered)
redis.call("ZADD", workers, now_ms, worker_id)
redis.call("ZREMRANGEBYSCORE", workers, "-inf", now_ms - remembered)

for at = 5, #ARGV, 3 do
  local number, id, token = unpack(ARGV, at, at + 2)
  local held_by = string.match(redis.call("HGET", runs, id) or "", "^1 %S+ (%S+)")
  if held_by == token then
    redis.call("ZADD", KEYS[3 + number], now_ms + lease, id)
  else
    lost[#lost + 1] = id
  end
end
return lost
