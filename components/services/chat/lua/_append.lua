-- Append an entry to the stream: a message, or an event, which has no sender. *n* is how many messages there are
-- then. *reply* is the seq that a message replies to, false or nil for none: only replies have the last field.
local function append(seq, sender, call, at, n, named, body, reply)
  local id = seq .. "-0"
  if reply then
    redis.call("XADD", messages, id, "s", sender, "c", call, "t", at, "n", n, "m", named, "b", body, "r", reply)
  else
    redis.call("XADD", messages, id, "s", sender, "c", call, "t", at, "n", n, "m", named, "b", body)
  end
end
