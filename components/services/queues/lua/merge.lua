-- Return the first tasks in a state of several queues, merged into one order. Only reads.
-- The next to run come first, or the latest to end, and of those with the same score those of the first queue.
-- The keys are the beginnings of those of each queue.
-- KEYS    ready delayed running dead successful
-- ARGV    state most first last after id done names...
-- RETURNS how many tasks come before, and for each task the number of its queue, its id and its score
-- Only scores from *first* to *last* count; "" is no bound. The call goes on at the score *after*: of the tasks that
-- have it, those of the first *done* queues are left out, and of the next queue those up to *id*.
local LARGEST = 128 -- tasks that are read at once
local stems = { ready = ready, delayed = delayed, running = running, dead = dead, successful = successful }
local latest_first = state == "dead" or state == "successful"
local lowest, highest = tonumber(first) or -math.huge, tonumber(last) or math.huge

-- Return how many tasks come before those with a score; these count themselves if *has_these*.
local function before(key, score, has_these)
  local bound = (has_these and "" or "(") .. score
  if latest_first then return redis.call("ZCOUNT", key, bound, "+inf") end
  return redis.call("ZCOUNT", key, "-inf", bound)
end

-- Return how many tasks of a queue come before the first that is wanted.
local function start_of(key, number)
  local bound, start = latest_first and last or first, 0
  if bound ~= "" then start = before(key, bound, false) end
  if after == "" then return start end
  local rank = false
  if number == done + 1 and id ~= "" then
    rank = redis.call("ZRANK", key, id)
    if rank and latest_first then rank = redis.call("ZREVRANK", key, id) end
  end
  return math.max(start, rank and rank + 1 or before(key, after, number <= done))
end

-- Go on to the next task of a queue. Return false at its end.
local function step(queue)
  if queue.next > #queue.page then
    local stop = queue.rank + queue.size - 1
    if latest_first then
      queue.page = redis.call("ZREVRANGE", queue.key, queue.rank, stop, "WITHSCORES")
    else
      queue.page = redis.call("ZRANGE", queue.key, queue.rank, stop, "WITHSCORES")
    end
    queue.rank, queue.size, queue.next = stop + 1, math.min(2 * queue.size, LARGEST), 1
  end
  queue.id, queue.score = queue.page[queue.next], queue.page[queue.next + 1]
  queue.next = queue.next + 2
  local score = tonumber(queue.score)
  if not score or score < lowest or score > highest then return false end
  queue.at = latest_first and -score or score
  return true
end

local function precedes(one, other)
  if one.at ~= other.at then return one.at < other.at end
  return one.number < other.number
end

-- A heap of queues: that with the first task is at its top.
local heap = {}

local function raise(place)
  while place > 1 do
    local above = math.floor(place / 2)
    if not precedes(heap[place], heap[above]) then return end
    heap[place], heap[above], place = heap[above], heap[place], above
  end
end

local function lower()
  local place = 1
  while true do
    local below = 2 * place
    if heap[below + 1] and precedes(heap[below + 1], heap[below]) then below = below + 1 end
    if not heap[below] or not precedes(heap[below], heap[place]) then return end
    heap[place], heap[below], place = heap[below], heap[place], below
  end
end

done = tonumber(done)
local offset, answer = 0, {}
for number, name in ipairs(names) do
  local key = stems[state] .. name
  local queue = { key = key, number = number, rank = start_of(key, number), size = 2, page = {}, next = 1 }
  offset = offset + queue.rank
  if step(queue) then
    heap[#heap + 1] = queue
    raise(#heap)
  end
end
answer[1] = offset
while heap[1] and #answer < 3 * most do
  local queue = heap[1]
  answer[#answer + 1], answer[#answer + 2], answer[#answer + 3] = queue.number, queue.id, queue.score
  if not step(queue) then
    heap[1] = heap[#heap]
    heap[#heap] = nil
  end
  if heap[1] then lower() end
end
return answer
