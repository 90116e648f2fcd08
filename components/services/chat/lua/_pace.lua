-- USES    time
-- The millisecond at which the messages of a person are paid for, and the millisecond of their last message.
-- RECORD  pace: paid spoke

-- Count a message or a change by a person, and return 0; or the milliseconds until there is room for it. *slow* is
-- the pause between two messages, which does not count for changes.
local function pay(person, limit, period, slow, is_message)
  if limit == 0 and slow == 0 then return 0 end
  local key = rate .. "/" .. person
  local pace = read_pace(redis.call("GET", key) or "0 0")
  -- A value further ahead than possible was written by a clock that had jumped, and is ignored.
  local paid = tonumber(pace.paid) > NOW + period and NOW or math.max(NOW, pace.paid)
  local spoke = tonumber(pace.spoke) > NOW + slow and 0 or pace.spoke
  local wait = limit > 0 and paid - period * (limit - 1) / limit - NOW or 0
  wait = math.ceil(math.max(wait, is_message and slow > 0 and spoke + slow - NOW or 0))
  if wait > 0 then return wait end
  if limit > 0 then paid = paid + period / limit end
  if is_message then spoke = text(NOW) end
  local paced = write_pace({ paid = string.format("%.3f", paid), spoke = spoke })
  redis.call("SET", key, paced, "PX", math.ceil(math.max(paid - NOW, spoke + slow - NOW, 1)))
  return 0
end
