-- USES    time place
-- A score is a rank and an instant: the oldest is the oldest head of the few ranks in use.
local function oldest_age(ready)
  local oldest, from = nil, "0"
  local last = text(402 * SPAN) -- beyond the last rank: higher scores are not from this app
  while true do
    local score = tonumber(redis.call("ZRANGEBYSCORE", ready, from, last, "WITHSCORES", "LIMIT", 0, 1)[2])
    if not score then break end
    local rank = math.floor(score / SPAN)
    oldest = math.min(oldest or math.huge, score - rank * SPAN)
    from = text((rank + 1) * SPAN)
  end
  return oldest and math.max(0, NOW - oldest) or -1
end

local function count(key) return redis.call("ZCARD", key) end

-- Return the sizes of a queue: ready, delayed, running, dead, successful; 1 if it is paused; milliseconds that the
-- oldest ready task waits, or -1; the microsecond when the next is due, or 0; starts that were cut off.
local function sizes_of(queue, name)
  return {
    count(queue.ready), count(queue.delayed), count(queue.running), count(queue.dead), count(queue.successful),
    redis.call("SISMEMBER", paused, name), oldest_age(queue.ready),
    string.format("%.0f", redis.call("ZRANGE", queue.delayed, 0, 0, "WITHSCORES")[2] or 0),
    tonumber(redis.call("GET", queue.cut) or 0),
  }
end
