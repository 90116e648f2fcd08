-- Count the tasks of queues. Reads only.
-- KEYS[1] paused  SET of queues
-- KEYS[2..] per queue: ready, delayed, running, dead, successful ZSETs, STRING number of starts that were cut off
-- ARGV[1..] the queues
-- Returns now (microseconds), and per queue: ready, delayed, running, dead, successful, paused (1 or 0),
--         milliseconds that the oldest ready task waits (or -1), microsecond when the next is due (or 0),
--         starts that were cut off
local paused, SPAN = KEYS[1], 2 ^ 43 -- as in push.lua
local LAST = string.format("%.0f", 402 * SPAN) -- above the lowest rank; what lies beyond is not ours

local time = redis.call("TIME")
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)

-- A score is rank * SPAN + instant: the oldest is the oldest head of the few ranks in use.
local function oldest_age(ready)
  local oldest, from = nil, "0"
  while true do
    local score = tonumber(redis.call("ZRANGEBYSCORE", ready, from, LAST, "WITHSCORES", "LIMIT", 0, 1)[2])
    if not score then break end
    local rank = math.floor(score / SPAN)
    oldest = math.min(oldest or math.huge, score - rank * SPAN)
    from = string.format("%.0f", (rank + 1) * SPAN)
  end
  return oldest and math.max(0, now_ms - oldest) or -1
end

local answer = { string.format("%.0f", time[1] * 1000000 + time[2]) }
for number, queue in ipairs(ARGV) do
  local base = 2 + 6 * (number - 1)
  local counts = {}
  for part = 0, 4 do counts[part + 1] = redis.call("ZCARD", KEYS[base + part]) end
  counts[6] = redis.call("SISMEMBER", paused, queue)
  counts[7] = oldest_age(KEYS[base])
  counts[8] = string.format("%.0f", redis.call("ZRANGE", KEYS[base + 1], 0, 0, "WITHSCORES")[2] or 0)
  counts[9] = tonumber(redis.call("GET", KEYS[base + 5]) or 0)
  answer[number + 1] = counts
end
return answer
