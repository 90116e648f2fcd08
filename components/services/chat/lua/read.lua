-- Move the reading position of a member forward. It never moves back.
-- KEYS    chat messages members reads mentions own deleted
-- ARGV    person wanted channel most_told
-- USES    clock entry member
-- RETURNS the new position, or -1 for a stranger; and 1 if trimming is due
local member = member_of(person)
if not member then return { -1, 0 } end
local last, n, cut, base, due_at, drop_read_after = unpack(redis.call("HMGET", chat,
  "seq", "n", "cut", "base", "due_at", "drop_read_after"))
last, n, cut = tonumber(last), tonumber(n), tonumber(cut)
local before = tonumber(redis.call("ZSCORE", reads, person))
local seq = math.min(wanted, last)
local is_due = drop_read_after ~= "0" and microseconds() >= (due_at or 0) * 1000 and 1 or 0
if seq <= before then return { before, is_due } end

if seq < last then
  -- A deleted message has an ordinal, too, but no entry that contains it.
  local entry = redis.call("XREVRANGE", messages, seq, cut + 1, "COUNT", 1)[1]
  local from = entry and seq_of(entry) or math.min(cut, seq)
  n = (entry and tonumber(entry[2][ORDINAL]) or tonumber(base)) + redis.call("ZCOUNT", deleted, "(" .. from, seq)
end
-- Free memory first, so that a server that is out of memory runs the whole script.
for _, key in ipairs({ mentions, own }) do redis.call("ZREMRANGEBYSCORE", key .. "/" .. person, "-inf", seq) end
member.read_n = math.max(n, tonumber(member.read_n))
redis.call("HSET", members, person, write_member(member))
redis.call("ZADD", reads, "XX", "GT", seq, person)
if redis.call("HLEN", members) <= tonumber(most_told) then
  redis.call("HINCRBY", chat, "revision", 1)
  redis.call("PUBLISH", channel, "read")
end
return { seq, is_due }
