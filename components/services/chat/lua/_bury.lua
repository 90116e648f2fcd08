-- USES    entry packed digest tombstone altered unaltered
-- Delete a message, and return its size in bytes. A tombstone stays, so that the message cannot be sent again.
local function bury(entry)
  local seq, fields = seq_of(entry), entry[2]
  local sender, client_id, named = fields[SENDER], fields[CLIENT_ID], fields[MENTIONS]
  local now_named = alterations_of(seq)[2]
  local tombstone = { seq = seq, digest = digest_of(sender, client_id), sent_at = fields[AT] }
  tombstone.content = content_of(fields[BODY], fields[REPLY] or "")
  -- Free memory first, so that a server that is out of memory runs the whole script.
  redis.call("XDEL", messages, entry[1])
  redis.call("ZREM", own .. "/" .. sender, seq)
  redis.call("ZADD", deleted, seq, write_tombstone(tombstone))
  for _, person in ipairs(unpacked(named .. now_named)) do redis.call("ZREM", mentions .. "/" .. person, seq) end
  return #sender + #client_id + #named + #fields[BODY] + forget_alterations(seq)
end
