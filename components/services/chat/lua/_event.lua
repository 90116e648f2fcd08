-- USES    time append moment
local function moment(head) return moment_after(head.at) end


-- Append the events of a call, given as their bodies, and wake waiters. Return the seq of the last.
-- *head* has seq, n, at and bytes.
local function append_events(head, call, channel, bodies)
  local seq, at, bytes = head.seq, moment(head), head.bytes
  if redis.call("EXISTS", messages) == 0 then
    -- The stream has an expiry if all of it was too old.
    redis.call("HSET", chat, "cut", seq, "base", head.n)
    bytes = 0
  end
  for _, body in ipairs(bodies) do
    seq, bytes = seq + 1, bytes + #call + #body
    append(seq, "", call, at, head.n, "", body)
  end
  redis.call("HSET", chat, "seq", seq, "at", at, "bytes", bytes)
  redis.call("PUBLISH", channel, seq)
  return seq
end
