-- USES    sent digest
local YEAR = 366 * 86400000 -- milliseconds

-- Remove the chat, except for the position of its sequence, and a digest by which the call that created it is
-- recognised when it is repeated. *head* has seq, n and level.
local function end_chat(id, head, at)
  local owner, made_by, content = unpack(redis.call("HMGET", chat, "created_by", "call", "content"))
  for _, part in ipairs(all_parts(head.level)) do redis.call("UNLINK", part) end
  redis.call("UNLINK", chat, messages, members, reads, blocked, deleted, muted, altered, changes, here, typing)
  redis.call("HSET", chat, "seq", head.seq, "n", head.n, "at", at, "gone", "1")
  redis.call("HSET", chat, "made", digest_of(owner or "", made_by or ""))
  if content then redis.call("HSET", chat, "content", content) end
  redis.call("PEXPIRE", chat, YEAR)
  redis.call("ZREM", names, id)
end
