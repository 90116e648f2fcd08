-- Find the entries that a prefix begins, or a word of which it begins. Reads only.
-- KEYS[1] book      HASH version, count, when it was loaded, by which rules names were folded
-- KEYS[2] entries   ZSET search key, \1, id: from the beginning and from each word on
-- KEYS[3] rows      HASH part of a digest of the id -> rows, each after \2
-- KEYS[4] selected  ZSET the members of entries that were ever selected
-- KEYS[5] ranks     ZSET id by the logarithm of its selections, as they decay
-- KEYS[6] tops      HASH prefix that many of the selected match -> the best of them
-- ARGV[1] search key
-- ARGV[2] how many
-- ARGV[3..] other ways in which it may be meant, for where too few are found: beginnings of different words of a
--           name, the longest first, with \1 between
-- Returns the version, 1 if more match, and of each, best first: \2, id, \1, label, as one text, which is much less
--         work than many; nothing if there is no such book
local book, entries, rows, selected, ranks, tops = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local prefix, limit = ARGV[1], tonumber(ARGV[2])
local find, sub = string.find, string.sub
local MANY, AT_ONCE = 64, 500 -- of the selected, from which on the best are kept; looked at where they are not
local MOST = 1000 -- of the names with the rarest of the words that were typed: so many are looked at

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
-- A name that is meant otherwise has all of the words: it is looked for among those of the rarest.
local is_more = #chosen > limit
local function shelf_of(id) return sub(redis.sha1hex(id), 1, 4) end
local function beginnings(packed, id)
  local _, past = find(packed, "\2" .. id .. "\1", 1, true)
  local row = sub(packed, past + 1, (find(packed, "\2", past, true) or #packed + 1) - 1)
  local label, key, starts, variants = string.match(row, "^([^\1]+)\1([^\1]*)\1?([^\1]*)(.*)$")
  if key == "" then key = string.lower(label) end
  local found = { { key } }
  for start in string.gmatch(starts, "%d+") do found[#found + 1] = { sub(key, start + 1) } end
  for number, text in string.gmatch(variants, "\1(%d+) ([^\1]+)") do found[number + 1][2] = text end
  return found
end
local function begin(texts, word)
  return sub(texts[1], 1, #word) == word or texts[2] and sub(texts[2], 1, #word) == word
end
local function fits(words, starts)
  local taken = {}
  for _, word in ipairs(words) do
    local place
    for at, texts in ipairs(starts) do
      if not taken[at] and begin(texts, word) then
        place = at
        break
      end
    end
    if not place then return false end
    taken[place] = true
  end
  return true
end
local function other(way)
  local words, rarest, fewest = {}, nil, math.huge
  for word in string.gmatch(way, "[^\1]+") do
    words[#words + 1] = word
    local number = redis.call("ZLEXCOUNT", entries, "[" .. word, "[" .. word .. "\255")
    if number < fewest then rarest, fewest = word, number end
  end
  first, last = "[" .. rarest, "[" .. rarest .. "\255"
  local seen, fitting = {}, {}
  local function look(index, offset)
    local ids, shelves = {}, {}
    local part = range(index, offset, AT_ONCE)
    for _, member in ipairs(part) do
      local id = id_of(member)
      if not seen[id] and not place[id] then
        ids[#ids + 1], shelves[#shelves + 1], seen[id] = id, shelf_of(id), true
      end
    end
    for at, packed in ipairs(#ids > 0 and redis.call("HMGET", rows, unpack(shelves)) or {}) do
      local starts = beginnings(packed, ids[at])
      if fits(words, starts) then
        fitting[#fitting + 1] = { ids[at], starts[1][1], redis.call("ZSCORE", ranks, ids[at]) }
      end
    end
  end
  look(selected, 0)
  for from = 0, math.min(fewest, MOST) - 1, AT_ONCE do
    look(entries, from)
    if #chosen + #fitting > limit and from + AT_ONCE < fewest then break end
  end
  if fewest > MOST then is_more = true end
  return fitting
end
if #chosen <= limit then
  local found, known = {}, {}
  for at = 3, #ARGV do
    for _, each in ipairs(other(ARGV[at])) do
      if not known[each[1]] then
        found[#found + 1], known[each[1]] = each, true
        each[3] = each[3] and tonumber(each[3]) or -math.huge
      end
    end
  end
  table.sort(found, function(a, b)
    if a[3] ~= b[3] then return a[3] > b[3] end
    if a[2] ~= b[2] then return a[2] < b[2] end
    return a[1] < b[1]
  end)
  for _, each in ipairs(found) do choose(each[1]) end
  is_more = is_more or #chosen > limit
end

local texts, shelves = {}, {}
for at = 1, math.min(limit, #chosen) do shelves[at] = shelf_of(chosen[at]) end
for at, packed in ipairs(#shelves > 0 and redis.call("HMGET", rows, unpack(shelves)) or {}) do
  local from, past = find(packed, "\2" .. chosen[at] .. "\1", 1, true)
  texts[at] = sub(packed, from, find(packed, "\1", past + 1, true) - 1)
end
return { version, is_more and 1 or 0, table.concat(texts) }
