-- USES    packed
-- What was changed of a message after it was sent is stored beside it, as packed parts: the millisecond of the edit,
-- and the mentions and the body since then, each "" if it was not edited; then emoji and person of each reaction.

-- Return these parts of a message. Damaged ones count as none.
local function alterations_of(seq)
  local found = redis.call("HGET", altered, seq)
  local parts = found and unpacked(found) or {}
  return parts[3] and parts or { "", "", "" }
end

-- Store these parts of a message, and wake waiters. *head* has max_age.
local function alter(head, seq, parts, channel)
  local before, words = redis.call("HSTRLEN", altered, seq), {}
  for at, part in ipairs(parts) do words[at] = packed(part) end
  local found, revision = table.concat(words), redis.call("HINCRBY", chat, "revision", 1)
  redis.call("HSET", altered, seq, found)
  redis.call("ZADD", changes, revision, seq)
  redis.call("HSET", chat, "changed", revision)
  redis.call("HINCRBY", chat, "bytes", #found - before)
  -- They live at least as long as the message, which is older.
  if head.max_age ~= "0" then
    for _, key in ipairs({ altered, changes }) do redis.call("PEXPIRE", key, head.max_age) end
  end
  redis.call("PUBLISH", channel, "changed")
end
