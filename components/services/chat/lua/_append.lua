-- Append an entry to the stream: a message, or an event, which has no sender. *n* is how many messages there are
-- then.
local function append(seq, sender, call, at, n, named, body)
  redis.call("XADD", messages, seq .. "-0", "s", sender, "c", call, "t", at, "n", n, "m", named, "b", body)
end
