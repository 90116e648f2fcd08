-- Take a permit or, if none is free, a place in the queue. A repeated call does not take another.
-- KEYS    holders heavy since queue beats stats use limits names ended wake
-- ARGV    name permit weight declared lease life waits
-- USES    time waiters queueing waking permits use ahead longest
-- RETURNS "granted" and the microseconds left; "wait" and the milliseconds in which nothing changes without a
--         wake-up; "full" and 0, if the caller does not wait; "heavy" and the limit, if the weight
--         is above it; "ended" and the call that ended the permit
weight, lease, life = tonumber(weight), tonumber(lease), tonumber(life)
local MONTH, TWO_DAYS = 30 * 86400000, 2 * 86400000 -- milliseconds

-- A server that is out of memory refuses a script whose first write needs memory. This write changes nothing and
-- needs none. There are few permits, so it is safe, and workers can claim tasks under a limit and drain queues even
-- then.
redis.call("ZREM", holders, "")

local over = redis.call("ZRANGEBYSCORE", holders, "-inf", text(MICROSECONDS)) -- the leases that have ended
for _, each in ipairs(over) do remove_permit(each) end
if #over > 0 then redis.call("HINCRBY", stats, "expired", #over) end
local dead = remove_dead_waiters(MICROSECONDS, life)

redis.call("HSET", stats, "declared", declared)
redis.call("PEXPIRE", stats, MONTH)
if redis.call("ZADD", names, "GT", "CH", DAY, name) == 1 then
  redis.call("ZREMRANGEBYSCORE", names, "-inf", DAY - 31)
  if redis.call("HLEN", limits) == 0 then redis.call("PEXPIRE", names, MONTH + TWO_DAYS) end
end
if #over + dead > 0 then wake_first(permit) end

local ends_at, ended_by = redis.call("ZSCORE", holders, permit), redis.call("GET", ended .. ":" .. permit)
if ends_at then return { "granted", ends_at - MICROSECONDS } end
if ended_by then return { "ended", ended_by } end

local limit = tonumber(redis.call("HGET", limits, name) or declared)
if weight > limit then return { "heavy", limit } end
local used, heavier = count_used()
local free = limit - used
local first = first_waiter()
if first and first ~= permit or weight > free then
  local longest = longest_lease()
  if longest and bring_back(holders, MICROSECONDS + math.max(longest, lease)) > 0 then
    bring_back(since, MICROSECONDS)
  end
  if waits == "0" then return { "full", 0 } end
  line_up(permit, life)
  local next_end = redis.call("ZRANGE", holders, 0, 0, "WITHSCORES")[2] or math.huge
  local next_death = redis.call("ZRANGE", beats, 0, 0, "WITHSCORES")[2]
  return { "wait", math.ceil((math.min(next_end, next_death) - MICROSECONDS) / 1000) }
end

redis.call("ZADD", holders, text(MICROSECONDS + lease), permit)
redis.call("ZADD", since, text(MICROSECONDS), permit)
if weight > 1 then redis.call("ZADD", heavy, weight, permit) end
redis.call("PEXPIRE", holders, MONTH)
redis.call("PEXPIRE", since, MONTH)
if weight > 1 or heavier > 0 then redis.call("PEXPIRE", heavy, MONTH) end
redis.call("HINCRBY", stats, "granted", 1)
note_lease()
note_use(used, used + weight, MICROSECONDS + lease)
if first then -- the first waiter is the caller
  local waited = math.max(0, MICROSECONDS - redis.call("ZSCORE", queue, permit))
  local longest = tonumber(redis.call("HGET", stats, "longest") or 0)
  remove_waiter(permit)
  redis.call("DEL", wake .. ":" .. permit)
  redis.call("HINCRBY", stats, "waits", 1)
  redis.call("HINCRBY", stats, "waited", text(waited))
  redis.call("HSET", stats, "longest", text(math.max(longest, waited)))
  if free > weight then wake_first(permit) end
end
return { "granted", lease }
