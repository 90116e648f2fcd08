-- Give back a permit or a place in the queue, and wake the next waiter. A repeated call returns the same.
-- KEYS    holders heavy since queue beats stats use ended wake
-- ARGV    permit call
-- USES    time waiters waking permits use
-- RETURNS the name of the call that ended the permit, this one or an earlier one; "" if its lease ran out
local mine = ended .. ":" .. permit
local is_leaving = string.sub(call, 1, 5) == "leave" -- the others begin with release or evict
local ends_at = tonumber(redis.call("ZSCORE", holders, permit) or 0)
local is_ended_now = false
if ends_at > MICROSECONDS or is_leaving then
  local weight = redis.call("ZSCORE", heavy, permit) or 1
  remove_permit(permit)
  if ends_at > MICROSECONDS then
    local used = count_used()
    note_use(used + weight, used, 0)
  end
  is_ended_now = redis.call("SET", mine, call, "NX", "PX", 30000) -- the milliseconds in which it may be called again
end
if is_leaving and remove_waiter(permit) == 1 then redis.call("HINCRBY", stats, "given_up", 1) end
redis.call("DEL", wake .. ":" .. permit) -- a full server runs a script that has begun with this
remove_dead_waiters(MICROSECONDS)
wake_first()
return is_ended_now and call or redis.call("GET", mine) or ""
