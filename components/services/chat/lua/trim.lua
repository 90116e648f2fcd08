-- Remove the oldest entries of a chat, by its limits or up to the seq *before* (0 for the limits alone). One call
-- removes at most *most* entries.
-- KEYS    chat messages reads sent deleted altered changes calls
-- ARGV    before call most channel
-- USES    time head entry digest sent tombstone portion unaltered
-- RETURNS how many were removed, and 1 if there are more
local done = answered_portion(call)
if done then return done end
local head = head_of(
  chat, "seq", "n", "at", "bytes", "cut", "base", "level", "gone", "max_messages", "max_bytes", "max_age",
  "drop_read_after", "changed"
)
if not is_there(head) then return { 0, 0 } end
before = tonumber(before)
local limit, most_bytes = tonumber(head.max_messages), tonumber(head.max_bytes)
local age, drop = tonumber(head.max_age), tonumber(head.drop_read_after)
local live, dead = redis.call("XLEN", messages), redis.call("ZCARD", deleted)
local bytes, cut, base, gone, more = tonumber(head.bytes), head.cut, head.base, 0, 1
local slowest = tonumber(redis.call("ZRANGE", reads, 0, 0, "WITHSCORES")[2] or 0)

-- Remove the digest by which a message is recognised when it is sent again.
local function forget(seq, digest)
  for level = tonumber(head.level), 0, -1 do
    local part = part_of(level, digest)
    if redis.call("HGET", part, digest) == seq then return redis.call("HDEL", part, digest) end
  end
end

-- Tombstones count as well: together with the messages, they are at most twice the limit of messages.
local function is_crowded(after)
  return dead > limit and live + redis.call("ZCOUNT", deleted, "(" .. after, "+inf") > 2 * limit
end

local function shall_go(seq, at)
  local is_old = age > 0 and at + age <= NOW
  local is_read = drop > 0 and at + drop <= NOW and tonumber(seq) <= slowest
  return tonumber(seq) <= before or live > limit or bytes > most_bytes or is_crowded(seq) or is_old or is_read
end

-- Subtract an entry from the counts. The stream itself is trimmed once, for all entries.
local function drop_entry(seq, fields)
  if fields[SENDER] ~= "" and fields[CLIENT_ID] then forget(seq, digest_of(fields[SENDER], fields[CLIENT_ID])) end
  for _, at in ipairs({ SENDER, CLIENT_ID, MENTIONS, BODY }) do bytes = bytes - #(fields[at] or "") end
  if head.changed then bytes = bytes - forget_alterations(seq) end
  live, gone = live - 1, gone + 1
  cut, base = seq, tonumber(fields[ORDINAL]) and fields[ORDINAL] or base
end

-- No entry is younger than a later one, even if a clock that had jumped ahead wrote it. A damaged one counts as old.
local entries, sent_at, latest = redis.call("XRANGE", messages, "-", "+", "COUNT", most), {}, NOW
for at = #entries, 1, -1 do
  local written = tonumber(entries[at][2][AT])
  latest = math.min(latest, written or latest)
  sent_at[at] = written and latest or 0
end
for at, entry in ipairs(entries) do
  local seq, fields = seq_of(entry), entry[2]
  if not shall_go(seq, sent_at[at]) then
    more = 0
    break
  end
  drop_entry(seq, fields)
end
if gone > 0 then redis.call("XTRIM", messages, "MINID", "=", cut + 1) end
if live == 0 then
  more = 0
  -- A stream gets an expiry if all of it is too old.
  if age > 0 and head.at + age <= NOW then cut, base, bytes = head.seq, head.n, 0 end
end
if more == 0 and is_crowded(cut) then
  local first = redis.call("XRANGE", messages, "-", "+", "COUNT", 1)[1]
  cut = first and seq_of(first) - 1 or head.seq
  base = first and first[2][ORDINAL] - (first[2][SENDER] ~= "" and 1 or 0) or head.n
end
for _, each in ipairs(redis.call("ZRANGEBYSCORE", deleted, "-inf", cut)) do
  local tombstone = read_tombstone(each)
  if tonumber(tombstone.digest, 16) then forget(tombstone.seq, tombstone.digest) end
end
redis.call("ZREMRANGEBYSCORE", deleted, "-inf", cut)
if age > 0 then redis.call("PEXPIRE", messages, math.max(1, head.at + age - NOW)) end
local due_at = math.ceil(NOW + math.max(age, drop) / 100)
redis.call("HSET", chat, "bytes", bytes, "cut", cut, "base", base, "due_at", due_at)
-- The unread counts of some members have changed. That is news, although it has no seq.
if tonumber(cut) > slowest and tonumber(cut) > tonumber(head.cut) then
  redis.call("HINCRBY", chat, "revision", 1)
  if before > 0 then redis.call("PUBLISH", channel, "trimmed") end
end
return answer_portion(call, gone, more)
