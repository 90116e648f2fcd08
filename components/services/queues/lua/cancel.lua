-- Cancel tasks of a queue: what waits goes to the dead set, what runs is marked for its worker.
-- Repeated, it answers the same.
-- KEYS[1] tasks    HASH id -> record
-- KEYS[2] runs     HASH id -> run record
-- KEYS[3] uniques  HASH unique key -> id
-- KEYS[4] awaited  SET of ids whose end somebody waits for
-- KEYS[5] ready    ZSET
-- KEYS[6] delayed  ZSET
-- KEYS[7] dead     ZSET
-- KEYS[8] ended    prefix of the LISTs that tell who waits, an id is appended
-- ARGV[1..] ids
-- Returns per id: 2 it is cancelled, 1 it runs and its worker will be told, 0 it is neither waiting nor running
local tasks, runs, uniques, awaited = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local ready, delayed, dead, ended = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local TOLD = 60000 -- milliseconds, as in advance.lua

local time = redis.call("TIME")
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local now = string.format("%.0f", time[1] * 1000000 + time[2])

local function bury(id, run)
  -- Before the first claim there is no run record; one that cannot be read is no record of ours.
  local before, rest = string.match(run or "", "^1 %S+ %S+ (%d+ %d+ %d+ %d+) %d+( .*)$")
  redis.call("HSET", runs, id, "1 cancelled - " .. (before or "0 0 0 0") .. " " .. now .. (rest or " 0 0"))
  redis.call("ZADD", dead, now_ms, id)
  local unique = string.match(redis.call("HGET", tasks, id) or "", "^1 %d+ %S+ %S+ %S+ %S+ (%S+)") or "-"
  if redis.call("HGET", uniques, unique) == id then redis.call("HDEL", uniques, unique) end
  if redis.call("SREM", awaited, id) == 1 then
    redis.call("RPUSH", ended .. id, "1")
    redis.call("PEXPIRE", ended .. id, TOLD)
  end
end

local answer = {}
for number, id in ipairs(ARGV) do
  local run = redis.call("HGET", runs, id)
  local state, rest = string.match(run or "", "^1 (%S+)(.*)$")
  if redis.call("ZREM", ready, id) + redis.call("ZREM", delayed, id) > 0 then
    bury(id, run)
    state = "cancelled"
  elseif state == "running" then
    redis.call("HSET", runs, id, "1 cancelling" .. rest)
    state = "cancelling"
  end
  answer[number] = state == "cancelled" and 2 or state == "cancelling" and 1 or 0
end
return answer
