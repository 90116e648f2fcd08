-- Return the state of several chats of a bucket for a person, with the entries that they do not have yet. Only reads.
-- The keys are prefixes that, followed by an id, are the keys of a chat. For each chat, *questions* has the id; the
-- seq that the person has, "read" for their reading position, or "last" for the newest messages; and the revision
-- that they have, "" for any.
-- KEYS    chat messages members reads mentions own deleted altered changes
-- ARGV    person most most_bytes most_told questions...
-- USES    time member aged shown news
-- RETURNS the millisecond, and for each chat: 0 if not a member; 1 if nothing is new; 2 if the stored chat
--         cannot be read; else title, news, reads, the last entry, the entries after the seq, and those up to it that
--         were changed after the revision
most, most_bytes, most_told = tonumber(most), tonumber(most_bytes), tonumber(most_told)

-- Return entries from a seq on, the first or the newest of them; 1 if there are more; and how many bytes they have.
local function entries(source, from, is_newest)
  if most == 0 then return {}, 0, 0 end
  local found = is_newest and redis.call("XREVRANGE", source.stream, "+", from, "COUNT", most + 1)
    or redis.call("XRANGE", source.stream, from, "+", "COUNT", most + 1)
  return shown(source, found, is_newest, most, most_bytes)
end

-- Return the entries up to the seq *last* that were changed after the revision *known*, in the order of the changes,
-- and the revision up to which these are all.
local function changed_since(source, key, known, last, revision, bytes)
  local found = redis.call("ZRANGEBYSCORE", key, "(" .. known, "+inf", "WITHSCORES", "LIMIT", 0, most)
  local told, revisions = {}, {}
  for at = 1, #found, 2 do
    local seq = tonumber(found[at])
    local entry = seq > source.low and seq <= last and redis.call("XRANGE", source.stream, seq, seq)[1]
    if entry then told[#told + 1], revisions[#told + 1] = entry, found[at + 1] end
  end
  local kept, is_cut = shown(source, told, false, most, bytes)
  if is_cut == 1 then return kept, revisions[#kept] end
  return kept, #found == 2 * most and found[#found] or revision
end

local function look(id, seq, known)
  local record, stream = redis.call("HGET", members .. id, person), messages .. id
  if not record then return 0 end
  local last, revision, n, at, cut, base, closed, title, age, changed = unpack(redis.call("HMGET", chat .. id,
    "seq", "revision", "n", "at", "cut", "base", "closed", "title", "max_age", "changed"))
  last, n, cut, base, age = tonumber(last), tonumber(n), tonumber(cut), tonumber(base), tonumber(age)
  local read = tonumber(redis.call("ZSCORE", reads .. id, person))
  local has = seq == "read" and read or tonumber(seq)
  if has and has >= last and (known == "" or known == revision) then return 1 end
  local member = read_member(record)
  if age > 0 and tonumber(at) <= NOW - age then
    cut, base = last, n
  elseif age > 0 then
    cut, base = aged(stream, cut, base, last, NOW - age)
  end
  local hidden, after, is_newest = tonumber(member.hidden), "(" .. math.max(read, cut), has == nil
  local unread = n - (read > cut and member.read_n or base)
    - redis.call("ZCOUNT", own .. id .. "/" .. person, after, "+inf")
    - redis.call("ZCOUNT", deleted .. id, after, "+inf")
  local low = math.max(hidden, cut)
  local source = { stream = stream, low = low, altered = changed and altered .. id }
  local got, has_more, bytes = entries(source, math.max(has or 0, low) + 1, is_newest)
  local others = {}
  if changed and has and most > 0 and known ~= "" and tonumber(known) < tonumber(changed) then
    others, revision = changed_since(source, changes .. id, known, has, revision, most_bytes - bytes)
  end
  local from, count = low + 1, redis.call("HLEN", members .. id)
  local first = redis.call("XRANGE", stream, from, "+", "COUNT", 1)[1]
  local newest = first and redis.call("XREVRANGE", stream, "+", from, "COUNT", 1)[1]
  local news = {
    role = member.role, is_closed = closed == "1" and 1 or 0, last_seq = last, read_seq = read, unread = unread,
    mentions = redis.call("ZCOUNT", mentions .. id .. "/" .. person, after, "+inf"), members = count,
    revision = revision, missed = is_newest and 0 or math.max(0, cut - math.max(has, hidden)),
    oldest = first and seq_of(first) or last + 1, muted_until = member.muted_until,
    has_more = is_newest and 0 or has_more,
  }
  local told = count <= most_told and redis.call("ZRANGE", reads .. id, 0, -1, "WITHSCORES") or {}
  local alterations = newest and changed and redis.call("HGET", altered .. id, seq_of(newest))
  return { title, write_news(news), told, newest and plain(newest, alterations) or {}, got, others }
end

local found = { NOW }
for at = 1, #questions, 3 do
  -- A damaged chat must not make the others fail.
  local is_read, answer = pcall(look, questions[at], questions[at + 1], questions[at + 2])
  table.insert(found, is_read and answer or 2)
end
return found
