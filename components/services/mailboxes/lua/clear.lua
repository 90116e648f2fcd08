-- Drop all messages of a mailbox. A repeated call returns the same.
-- KEYS    mailbox messages handed dropped sent
-- ARGV    call
-- USES    figure entries days gone dropped
-- RETURNS how many were dropped
local count = redis.call("XLEN", messages)
if count > 0 then
  local newest = entries("newest", "-", 1000)
  -- Free memory first, so that a server that is out of memory runs the whole script.
  redis.call("DEL", messages, handed)
  for _, entry in ipairs(newest) do note_dropped(id_of(entry), entry[2][2]) end
  bound_dropped()
  redis.call("PEXPIRE", today, TWO_DAYS)
  redis.call("HSET", mailbox, "last_dropped", redis.call("ZRANGE", dropped, -1, -1)[1])
  redis.call("HSET", mailbox, "cleared", count, "clearing", call, "dropped", text(figure("dropped") + count))
end
return redis.call("HGET", mailbox, "clearing") == call and figure("cleared") or 0
