-- Acquire a lock if it is free, or take a place in its queue. A repeated call acquires it once.
-- KEYS    lock state queue beats held
-- ARGV    token asker ttl life fair waits waited
-- USES    time waiters queueing holder index lasting
-- RETURNS the fence and the milliseconds left, -1 for no end; or 0 and the milliseconds in which nothing changes
--         without a wake-up, -1 for ever
ttl, life, waited = tonumber(ttl), tonumber(life), tonumber(waited)
local is_known = redis.call("EXISTS", queue, state) > 0

-- Return the milliseconds left to the holder, -1 for no end. A holder whose fence is ahead of the clock has no more
-- than the longest lock.
local function time_left()
  local left, found = redis.call("PTTL", lock), redis.call("ZMSCORE", held, lock, LONGEST, FENCE)
  local ends, longest, most = found[1], found[2], math.max(ttl, -(found[2] or 0))
  local is_ahead = found[3] and -found[3] > MICROSECONDS
  if not is_ahead or not longest or left <= most or not ends or ends - NOW <= most then return left end
  redis.call("PEXPIRE", lock, most)
  redis.call("ZADD", held, text(NOW + most), lock)
  return most
end

if is_known then remove_dead_waiters(MICROSECONDS, life) end
local head = is_known and fair == "1" and first_waiter() or asker
local is_new = head == asker and (ttl == 0 and redis.call("SET", lock, token, "NX")
  or ttl > 0 and redis.call("SET", lock, token, "NX", "PX", ttl))
if not is_new then
  local holder = redis.call("GET", lock)
  if is_mine(holder) then
    return { -(redis.call("ZSCORE", held, FENCE) or -MICROSECONDS), redis.call("PTTL", lock) }
  end
  if waits == "1" then line_up(asker, life) end
  if holder then return { 0, time_left() } end
  local dies_at = redis.call("ZSCORE", beats, head)
  if not dies_at then redis.call("ZREM", queue, head) end -- Redis has evicted its heartbeats
  return { 0, math.ceil(((dies_at or MICROSECONDS) - MICROSECONDS) / 1000) }
end

-- *lost* is set if the last holder did not release the lock.
local lost, last, longest = unpack(redis.call("ZMSCORE", held, FENCE, "", LONGEST))
local fence = math.max(MICROSECONDS, 1 - (last or 0))
redis.call("ZADD", held, ttl == 0 and "inf" or text(NOW + ttl), lock, text(-fence), FENCE, text(-fence), "")
if ttl > -(longest or 0) then redis.call("ZADD", held, text(-ttl), LONGEST) end
if ttl == 0 then redis.call("PERSIST", held) else keep_index(ttl) end
if fence % 64 == 0 then
  for _, old in ipairs(redis.call("ZRANGEBYSCORE", held, 0, text(NOW - ONE_DAY), "LIMIT", 0, 100)) do
    redis.call("ZREM", held, old, "\255" .. old)
  end
end

if is_known or lost or waited > 0 or asker ~= token then
  remove_waiter(asker)
  local counted = redis.call("HEXISTS", state, "acquired")
  if counted == 1 or lost or waited > 0 then -- at the first count, the previous holder is included
    redis.call("HINCRBY", state, "acquired", 2 - counted)
    redis.call("HSET", state, "fence", text(fence))
  end
  if lost then redis.call("HINCRBY", state, "expired", 1) end
  if waited > 0 then
    redis.call("HINCRBY", state, "waits", 1)
    redis.call("HINCRBY", state, "waited", waited)
    redis.call("HSET", state, "longest", math.max(redis.call("HGET", state, "longest") or 0, waited))
  end
  if asker ~= token then redis.call("HSET", state, "by", asker) else redis.call("HDEL", state, "by") end
  redis.call("PEXPIRE", state, ttl + ONE_DAY)
  if ttl == 0 and asker ~= token then redis.call("PERSIST", state) end
end
return { fence, ttl == 0 and -1 or ttl }
