-- Find the entries that a prefix begins, or a word of which it begins. Reads only.
-- KEYS[1] book      HASH version, count, when it was loaded
-- KEYS[2] entries   ZSET search key, \1, id: from the beginning and from each word on
-- KEYS[3] rows      HASH part of a digest of the id -> rows, each after \2
-- KEYS[4] selected  ZSET the members of entries that were ever selected
-- KEYS[5] ranks     ZSET id by the logarithm of its selections, as they decay
-- KEYS[6] tops      HASH prefix that many of the selected match -> the best of them
-- ARGV[1] search key
-- ARGV[2] how many
-- Returns the version, 1 if more match, and of each, best first: \2, id, \1, label, as one text, which is much less
--         work than many; nothing if there is no such book
local book, entries, rows, selected, ranks, tops = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local prefix, limit = ARGV[1], tonumber(ARGV[2])
local find, sub = string.find, string.sub
local MANY, AT_ONCE = 64, 500 -- of the selected, from which on the best are kept; looked at where they are not

local version = redis.call("HGET", book, "version")
if not version then return {} end
local first, last = "[" .. prefix, "[" .. prefix .. "\255" -- a byte that no UTF-8 has
local function range(index, offset, count)
  return redis.call("ZRANGE", index, first, last, "BYLEX", "LIMIT", offset, count)
end
local function id_of(member) return sub(member, find(member, "\1", 1, true) + 1) end

local chosen, place = {}, {}
local function choose(id)
  if place[id] then return end
  chosen[#chosen + 1] = id
  place[id] = #chosen
end

local many = redis.call("ZLEXCOUNT", selected, first, last)
local top = many > MANY and redis.call("HGET", tops, prefix)
local best = many > 0 and not top and range(selected, 0, AT_ONCE) or {}
for id in string.gmatch(top or "", "\2[^\1]*\1([^\1]*)") do
  choose(id)
  if #chosen > limit then break end
end
for _, member in ipairs(best) do choose(id_of(member)) end
if #chosen > 1 and not top then
  local score = {}
  for at, rank in ipairs(redis.call("ZMSCORE", ranks, unpack(chosen))) do
    score[chosen[at]] = rank and tonumber(rank) or -math.huge
  end
  table.sort(chosen, function(a, b)
    if score[a] ~= score[b] then return score[a] > score[b] end
    return place[a] < place[b]
  end)
end

-- All others follow by the alphabet: none of them was ever selected. One more than asked tells whether more match.
local offset, count = 0, limit + 1 + #best
while #chosen <= limit and offset do
  local part = range(entries, offset, count)
  for _, member in ipairs(part) do choose(id_of(member)) end
  offset = #part == count and offset + count
end
local texts, shelves = {}, {}
for at = 1, math.min(limit, #chosen) do shelves[at] = sub(redis.sha1hex(chosen[at]), 1, 4) end
for at, packed in ipairs(#shelves > 0 and redis.call("HMGET", rows, unpack(shelves)) or {}) do
  local from, past = find(packed, "\2" .. chosen[at] .. "\1", 1, true)
  texts[at] = sub(packed, from, find(packed, "\1", past + 1, true) - 1)
end
return { version, #chosen > limit and 1 or 0, table.concat(texts) }
