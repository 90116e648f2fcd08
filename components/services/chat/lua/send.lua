-- Append a message to a chat, unless its sender has sent it before. *reply_to* is the seq that it replies to, "" for
-- none. That message may be gone; else a reply mentions its sender.
-- KEYS    chat messages members reads sent names mentions own rate deleted typing
-- ARGV    id sender client_id body characters data_bytes channel reply_to mentioned...
-- USES    time entry append moment member packed digest sent tombstone pace quoted
-- RETURNS "sent" or "duplicate", the seq, the millisecond, 1 if trimming is due, and the members addressed: those it
--         mentions, and the other one of two; or "unknown"; "reused", if it was sent with other content; "closed";
--         "muted" and until when; "long" and the limits of text and data; "fast" and the milliseconds until there is
--         room; "nowhere", if it replies to a later seq
local PART = 72 -- messages for each part of *sent*

local member = member_of(sender)
if not member then return { "unknown" } end
-- In locals, since a table of so many fields would cost more than reading them.
local seq, n, at, bytes, cut, level, closed, max_messages, max_bytes, max_age, drop_read_after, max_text, max_data,
  rate_limit, rate_period, slow_mode = unpack(redis.call("HMGET", chat,
    "seq", "n", "at", "bytes", "cut", "level", "closed", "max_messages", "max_bytes", "max_age", "drop_read_after",
    "max_text", "max_data", "rate_limit", "rate_period", "slow_mode"))
local digest = digest_of(sender, client_id)

-- Return whether a stored message mentions the same people. Those who were no members then are not stored, and the
-- one to whom it replies is.
local function mentions_the_same(fields)
  local asked, stored = {}, {}
  for _, person in ipairs(mentioned) do asked[person] = true end
  for _, person in ipairs(unpacked(fields[MENTIONS])) do
    if not asked[person] and not fields[REPLY] then return false end
    stored[person] = true
  end
  for _, person in ipairs(mentioned) do
    local its = not stored[person] and person ~= sender and member_of(person)
    if its and tonumber(its.joined_at) < tonumber(fields[AT]) then return false end
  end
  return true
end

-- Return seq and millisecond of the message if it was sent before, and whether it said the same.
local function find_sent()
  for each = 0, level do
    local found = redis.call("HGET", part_of(each, digest), digest)
    if found then
      local entry = redis.call("XRANGE", messages, found, found)[1]
      if entry and entry[2][SENDER] == sender then
        local fields = entry[2]
        local says_the_same = fields[BODY] == body and (fields[REPLY] or "") == reply_to
        return found, fields[AT], says_the_same and mentions_the_same(fields)
      end
      local tombstone = not entry and redis.call("ZRANGEBYSCORE", deleted, found, found)[1]
      if tombstone then
        local its = read_tombstone(tombstone)
        return found, its.sent_at, its.content == "" or its.content == content_of(body, reply_to)
      end
    end
  end
end

local function note(key, seq)
  redis.call("ZREMRANGEBYSCORE", key, "-inf", cut)
  redis.call("ZADD", key, seq, seq)
  if max_age ~= "0" then redis.call("PEXPIRE", key, max_age) end
end

-- Record the message for the members whom it mentions. Return the members addressed, and the stored form of the
-- mentions.
local function address(seq)
  local told, named, spoken_to = { [sender] = true }, "", {}
  for _, person in ipairs(mentioned) do
    if not told[person] and redis.call("HEXISTS", members, person) == 1 then
      told[person], named = true, named .. packed(person)
      spoken_to[#spoken_to + 1] = person
      note(mentions .. "/" .. person, seq)
    end
  end
  if redis.call("ZCARD", reads) == 2 then
    for _, person in ipairs(redis.call("ZRANGE", reads, 0, 1)) do
      if not told[person] then spoken_to[1] = person end
    end
  end
  return spoken_to, named
end

local found, found_at, is_same = find_sent()
if found and not is_same then return { "reused" } end
if found then return { "duplicate", tonumber(found), tonumber(found_at), 0, {} } end
if closed == "1" then return { "closed" } end
local muted_until = tonumber(member.muted_until)
if muted_until == -1 or muted_until > NOW then return { "muted", muted_until } end
local most_text, most_data = tonumber(max_text), tonumber(max_data)
if tonumber(characters) > most_text or tonumber(data_bytes) > most_data then
  return { "long", most_text, most_data }
end
if reply_to ~= "" and tonumber(reply_to) > tonumber(seq) then return { "nowhere" } end
local slow = member.role == "u" and tonumber(slow_mode) or 0
local wait = pay(sender, tonumber(rate_limit), tonumber(rate_period), slow, true)
if wait > 0 then return { "fast", wait } end

if reply_to ~= "" then mentioned[#mentioned + 1] = quoted_sender(reply_to, member.hidden, max_age) end
local before, sent_at = seq, text(moment_after(at))
seq, n = text(seq + 1), text(n + 1) -- as texts, since each goes into several commands
local spoken_to, named = address(seq)
append(seq, sender, client_id, sent_at, n, named, body, reply_to ~= "" and reply_to)
local live = redis.call("XLEN", messages)
-- The stream has an expiry if all of it was too old.
if live == 1 then redis.call("HSET", chat, "cut", before, "base", n - 1) end
local size = (live == 1 and 0 or bytes) + #sender + #client_id + #named + #body
redis.call("HSET", chat, "seq", seq, "n", n, "at", sent_at, "bytes", text(size))
-- Store the digest in a part of the level that suits the number of messages.
local fitting = 0
while PART * 4 ^ fitting < live do fitting = fitting + 1 end
local part = part_of(fitting, digest)
redis.call("HSET", part, digest, seq)
if fitting > tonumber(level) then redis.call("HSET", chat, "level", fitting) end
local has_read, is_first = redis.call("ZSCORE", reads, sender) == before, member.has_written == "0"
if has_read then
  redis.call("ZADD", reads, seq, sender)
  member.read_n = n
else
  note(own .. "/" .. sender, seq)
end
member.has_written = 1
if has_read or is_first then redis.call("HSET", members, sender, write_member(member)) end
if max_age ~= "0" then for _, key in ipairs({ messages, part }) do redis.call("PEXPIRE", key, max_age) end end
redis.call("ZADD", names, sent_at, id)
redis.call("ZREM", typing, sender)
redis.call("PUBLISH", channel, seq)
local is_full = live > math.floor(max_messages * 1.01) or size > max_bytes * 1.01
local longest = math.max(max_age, drop_read_after) / 100 -- milliseconds to the next trimming, see trim.lua
local due_at = longest > 0 and tonumber(redis.call("HGET", chat, "due_at") or 0)
local is_old = due_at and (NOW >= due_at or due_at > NOW + longest + 1)
return { "sent", tonumber(seq), tonumber(sent_at), (is_full or is_old) and 1 or 0, spoken_to }
