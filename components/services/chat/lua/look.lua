-- How several chats of a bucket stand for a person, with what he has not got yet. Changes nothing.
-- KEYS[1] chat      prefix to a chat id: HASH, what the chat is and how far it has come
-- KEYS[2] messages  prefix to a chat id: STREAM <seq>-0 -> message
-- KEYS[3] members   prefix to a chat id: HASH person -> words: role, number, joined at, sees after, ordinal read, ...
-- KEYS[4] reads     prefix to a chat id: ZSET person by the seq up to which he has read
-- KEYS[5] mentions  prefix to a chat id, "/" and a person: ZSET seqs that mention him, unread
-- KEYS[6] own       prefix to a chat id, "/" and a person: ZSET seqs that he said after what he has read
-- KEYS[7] deleted   prefix to a chat id: ZSET words of a deleted message by seq
-- ARGV[1] person
-- ARGV[2] so many messages of each chat at most
-- ARGV[3] so many bytes of bodies of each chat, if that is more than one
-- ARGV[4] so many members may know how far each has read
-- ARGV[5..] per chat: id; seq that he has ("read" for his reading position, "last" for the newest messages);
--         revision that he has, "" for any
-- Returns the millisecond, and per chat: 0 if not a member; 1 if nothing is new; 2 if what is stored of the chat
--         cannot be read; else title, words (role, is closed, last seq, read, unread, mentions, members, revision,
--         missed, oldest, muted until, has more), reads, the last entry, entries after their seq
local chat, messages, members, reads = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local mentions, own, deleted = KEYS[5], KEYS[6], KEYS[7]
local person, most, most_bytes, most_told = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- The last seq that is too old, and its ordinal: found by halves, since instants grow with the sequence.
local function aged(stream, cut, base, last, before)
  local low, high = cut, last + 1
  while high - low > 1 do
    local middle = math.floor((low + high) / 2)
    local entry = redis.call("XRANGE", stream, middle, high, "COUNT", 1)[1]
    if entry and (tonumber(entry[2][6]) or 0) <= before then
      low, base = tonumber(string.match(entry[1], "%d+")), tonumber(entry[2][8]) or base
    else
      high = middle
    end
  end
  return low, base
end

local function plain(entry)
  local fields, found = entry[2], { entry[1] }
  for each = 2, 12, 2 do table.insert(found, fields[each] or "") end -- a damaged one may have fewer
  return found
end

local function entries(stream, from, newest)
  local found = newest and redis.call("XREVRANGE", stream, "+", from, "COUNT", most + 1)
    or redis.call("XRANGE", stream, from, "+", "COUNT", most + 1)
  local kept, bytes = {}, 0
  for at, entry in ipairs(found) do
    bytes = bytes + #(entry[2][12] or "")
    if at > most or (at > 1 and bytes > most_bytes) then return kept, 1 end
    table.insert(kept, newest and 1 or at, plain(entry))
  end
  return kept, 0
end

local function look(id, seq, revision)
  local record, stream = redis.call("HGET", members .. id, person), messages .. id
  if not record then return 0 end
  local head =
    redis.call("HMGET", chat .. id, "seq", "revision", "n", "at", "cut", "base", "closed", "title", "settings")
  local last, n, cut, base = tonumber(head[1]), tonumber(head[3]), tonumber(head[5]), tonumber(head[6])
  local read = tonumber(redis.call("ZSCORE", reads .. id, person))
  local has = seq == "read" and read or tonumber(seq)
  if has and has >= last and (revision == "" or revision == head[2]) then return 1 end
  local role, seen, read_n, muted = string.match(record, "^(%a) %S+ %S+ (%S+) (%S+) (%S+)")
  local age = tonumber(string.match(head[9], "^%S+ %S+ %S+ (%S+)"))
  if age > 0 and tonumber(head[4]) <= now - age then
    cut, base = last, n
  elseif age > 0 then
    cut, base = aged(stream, cut, base, last, now - age)
  end
  seen = tonumber(seen)
  local after, is_newest = "(" .. math.max(read, cut), has == nil
  local unread = n - (read > cut and read_n or base)
    - redis.call("ZCOUNT", own .. id .. "/" .. person, after, "+inf")
    - redis.call("ZCOUNT", deleted .. id, after, "+inf")
  local got, has_more = {}, 0
  if most > 0 then got, has_more = entries(stream, math.max(has or 0, seen, cut) + 1, is_newest) end
  local from, count = math.max(seen, cut) + 1, redis.call("HLEN", members .. id)
  local first = redis.call("XRANGE", stream, from, "+", "COUNT", 1)[1]
  local newest = first and redis.call("XREVRANGE", stream, "+", from, "COUNT", 1)[1]
  local words = {
    role, head[7] and 1 or 0, last, read, unread,
    redis.call("ZCOUNT", mentions .. id .. "/" .. person, after, "+inf"), count, head[2],
    is_newest and 0 or math.max(0, cut - math.max(has, seen)),
    first and string.match(first[1], "%d+") or last + 1, muted, is_newest and 0 or has_more,
  }
  local told = count <= most_told and redis.call("ZRANGE", reads .. id, 0, -1, "WITHSCORES") or {}
  return { head[8], table.concat(words, " "), told, newest and plain(newest) or {}, got }
end

local found = { now }
for each = 5, #ARGV, 3 do
  -- One that is damaged fails none of the others.
  local is_read, answer = pcall(look, ARGV[each], ARGV[each + 1], ARGV[each + 2])
  table.insert(found, is_read and answer or 2)
end
return found
