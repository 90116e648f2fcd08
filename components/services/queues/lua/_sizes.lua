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

-- The delayed tasks that one call looks at, of all queues together.
local unseen = 1000

-- Return how many of the delayed tasks that are due first have been started before: they are tried again.
local function retrying(delayed)
  local ids, found = unseen > 0 and redis.call("ZRANGE", delayed, 0, unseen - 1) or {}, 0
  unseen = unseen - #ids
  for _, run in ipairs(#ids > 0 and redis.call("HMGET", runs, unpack(ids)) or {}) do
    if run then found = found + 1 end
  end
  return found
end

-- Return the sizes of a queue: ready, delayed, running, dead, successful; 1 if it is paused; milliseconds that the
-- oldest ready task waits, or -1; the microsecond when the next is due, or 0; starts that were cut off; delayed tasks
-- that are tried again; dead ones that their limit removed.
local function sizes_of(queue, name)
  return {
    count(queue.ready), count(queue.delayed), count(queue.running), count(queue.dead), count(queue.successful),
    redis.call("SISMEMBER", paused, name), oldest_age(queue.ready),
    string.format("%.0f", redis.call("ZRANGE", queue.delayed, 0, 0, "WITHSCORES")[2] or 0),
    tonumber(redis.call("GET", queue.cut) or 0), retrying(queue.delayed),
    tonumber(redis.call("GET", queue.trimmed) or 0),
  }
end
