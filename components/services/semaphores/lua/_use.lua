-- RECORD  use: minute most last ends
-- USES    time
-- The permits in use in a minute: at most, and after the last change, which holds until the second *ends* at most, if
-- there is no other.

-- Return the sum of the weights of the permits in use, and how many of them are heavy.
local function count_used()
  local weights = redis.call("ZRANGE", heavy, 0, -1, "WITHSCORES")
  local used = redis.call("ZCARD", holders)
  for at = 2, #weights, 2 do used = used + weights[at] - 1 end
  return used, #weights / 2
end

-- Note how many permits were in use before and after a change, at the end of which a lease ends at a microsecond.
local function note_use(before, after, ends_at)
  local minute = math.floor(NOW / 60000)
  local field = minute % 120
  local known = read_use(redis.call("HGET", use, field) or "")
  local most, ends, is_first = math.max(before, after), math.ceil(ends_at / 1000000), known.minute ~= text(minute)
  if not is_first then most, ends = math.max(most, known.most), math.max(ends, known.ends) end
  redis.call("HSET", use, field, write_use({
    minute = text(minute), most = text(most), last = text(after), ends = text(ends),
  }))
  if is_first then redis.call("PEXPIRE", use, 8 * 86400000) end
end
