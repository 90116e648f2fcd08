-- Append a message to a chat, unless its sender has sent it before.
-- KEYS[1] chat      HASH, what the chat is and how far it has come
-- KEYS[2] messages  STREAM <seq>-0 -> message
-- KEYS[3] members   HASH person -> words: role, number, joined at, sees after, ordinal read, muted until, call
-- KEYS[4] reads     ZSET person by the seq up to which he has read
-- KEYS[5] sent      prefix to a part: HASH digest of sender and client id -> seq
-- KEYS[6] names     ZSET chat id by the millisecond of its last message
-- KEYS[7] mentions  prefix to a person: ZSET seqs that mention him, unread
-- KEYS[8] own       prefix to a person: ZSET seqs that he said after what he has read
-- KEYS[9] rate      prefix to a person: STRING words: by when his messages are paid for, when he last spoke
-- KEYS[10] deleted  ZSET words of a deleted message (seq, digest, sent at) by seq
-- ARGV[1] chat id
-- ARGV[2] sender
-- ARGV[3] client id
-- ARGV[4] body
-- ARGV[5] characters of its text
-- ARGV[6] bytes of its data
-- ARGV[7] channel of the chat
-- ARGV[8..] persons whom it mentions
-- Returns "sent" or "duplicate", the seq, the millisecond, 1 if trimming is due, and to whom it speaks anew: whom it
--         mentions, and the other one of two; or "unknown"; "closed"; "muted" and until when; "long" and the
--         limits of text and data; "fast" and the milliseconds until there is room
local chat, messages, members, reads, sent, names = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local mentions, own, rate, deleted = KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local id, sender, client_id, body = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local characters, data, channel = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7]
local PART = 72 -- messages for each part of *sent*, so that each stays a compact one; there are 1, 4, 16, ...

local record = redis.call("HGET", members, sender)
if not record then return { "unknown" } end
local head = redis.call("HMGET", chat, "seq", "n", "at", "bytes", "cut", "level", "due_at", "closed", "settings")
local seq, n, at, bytes, cut, level = head[1], head[2], tonumber(head[3]), head[4], head[5], head[6]
local most, most_bytes, age, drop, most_text, most_data, limit, period, slow =
  string.match(head[9], "^%S+ (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) %S+ (%S+) (%S+) (%S+)")

local digest = string.sub(redis.sha1hex(sender .. "\0" .. client_id), 1, 16)
local number = tonumber(string.sub(digest, 1, 8), 16)
for each = 0, level do
  local found = redis.call("HGET", sent .. each .. ":" .. number % 4 ^ each, digest)
  if found then
    local entry = redis.call("XRANGE", messages, found, found)[1]
    if entry and entry[2][2] == sender then return { "duplicate", tonumber(found), tonumber(entry[2][6]), 0, {} } end
    local gone = not entry and redis.call("ZRANGEBYSCORE", deleted, found, found)[1]
    if gone then return { "duplicate", tonumber(found), tonumber(string.match(gone, "%d+$")), 0, {} } end
  end
end

local role, joined, read_n, muted, call =
  string.match(record, "^(%a) (%S+ %S+ %S+) (%S+) (%S+) (.*)$")
local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if head[8] then return { "closed" } end
if muted == "-1" or tonumber(muted) > now then return { "muted", tonumber(muted) } end
if characters > tonumber(most_text) or data > tonumber(most_data) then
  return { "long", tonumber(most_text), tonumber(most_data) }
end
limit, slow = tonumber(limit), role == "u" and tonumber(slow) or 0
if limit > 0 or slow > 0 then
  local paid, spoke = string.match(redis.call("GET", rate .. sender) or "0 0", "(%S+) (%S+)")
  -- What lies further ahead than it can was written by a clock that had jumped, and counts as nothing.
  paid = tonumber(paid) > now + period and now or math.max(now, paid)
  spoke = tonumber(spoke) > now + slow and 0 or spoke
  local wait = limit > 0 and paid - period * (limit - 1) / limit - now or 0
  wait = math.ceil(math.max(wait, slow > 0 and spoke + slow - now or 0))
  if wait > 0 then return { "fast", wait } end
  if limit > 0 then paid = paid + period / limit end
  local kept = math.ceil(math.max(paid - now, slow, 1))
  redis.call("SET", rate .. sender, string.format("%.3f %.0f", paid, now), "PX", kept)
end

seq, n = seq + 1, n + 1
local told, named, spoken_to = { [sender] = true }, "", {}
local sent_at = math.max(now, at)
local function note(key)
  redis.call("ZREMRANGEBYSCORE", key, "-inf", cut)
  redis.call("ZADD", key, seq, seq)
  if age ~= "0" then redis.call("PEXPIRE", key, age) end
end
for each = 8, #ARGV do
  local person = ARGV[each]
  if not told[person] and redis.call("HEXISTS", members, person) == 1 then
    told[person], named = true, named .. #person .. ":" .. person
    spoken_to[#spoken_to + 1] = person
    note(mentions .. person)
  end
end
local some = redis.call("ZRANGE", reads, 0, 2)
for _, person in ipairs(#some == 2 and some or {}) do
  if not told[person] then spoken_to[1] = person end
end
redis.call("XADD", messages, seq .. "-0", "s", sender, "c", client_id, "t", sent_at, "n", n, "m", named, "b", body)
local live, part = redis.call("XLEN", messages), 0
-- A stream that was too old as a whole has gone by itself.
if live == 1 then redis.call("HSET", chat, "cut", seq - 1, "base", n - 1) end
while PART * 4 ^ part < live do part = part + 1 end
local fresh = sent .. part .. ":" .. number % 4 ^ part
redis.call("HSET", fresh, digest, seq)
local size = (live == 1 and 0 or bytes) + #sender + #client_id + #named + #body
redis.call("HSET", chat, "seq", seq, "n", n, "at", sent_at, "bytes", size, "level", math.max(level, part))
if tonumber(redis.call("ZSCORE", reads, sender)) == seq - 1 then
  redis.call("ZADD", reads, seq, sender)
  redis.call("HSET", members, sender, table.concat({ role, joined, n, muted, call }, " "))
else
  note(own .. sender)
end
if age ~= "0" then for _, key in ipairs({ messages, fresh }) do redis.call("PEXPIRE", key, age) end end
redis.call("ZADD", names, sent_at, id)
redis.call("PUBLISH", channel, seq)
local is_full = live > math.floor(most * 1.01) or size > most_bytes * 1.01
local is_old = (age ~= "0" or drop ~= "0") and now >= tonumber(head[7] or 0)
return { "sent", seq, sent_at, (is_full or is_old) and 1 or 0, spoken_to }
