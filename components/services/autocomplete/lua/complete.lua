-- Find the entries whose name, or a word of it, begins with a prefix. Only reads.
-- KEYS    book entries rows selected ranks tops
-- ARGV    prefix limit others...
-- USES    rows prefixes
-- RETURNS the version, 1 if more match, and for each, best first: \2, id, \1, label, all as one text, which is much
--         less work than many; or nothing if there is no such book
-- Each of *others* is another reading of the prefix: prefixes of different words of a name, longest first, with \1
-- between. They are tried if the prefix itself finds too few entries.
limit = tonumber(limit)
local find, sub = string.find, string.sub
local AT_ONCE = 500 -- selected entries to examine if the best of them are not stored for the prefix
local MOST = 1000 -- names to examine, of those with the rarest typed word

local chosen, place = {}, {} -- ids, the best first; the place of each
local function choose(id)
  if place[id] then return end
  chosen[#chosen + 1] = id
  place[id] = #chosen
end

local function id_of(member) return sub(member, find(member, "\1", 1, true) + 1) end

local function matching(index, word, offset, count)
  local first, last = range_of(word)
  return redis.call("ZRANGE", index, first, last, "BYLEX", "LIMIT", offset, count)
end

local function sort_by_rank()
  local score = {}
  for at, rank in ipairs(redis.call("ZMSCORE", ranks, unpack(chosen))) do
    score[chosen[at]] = rank and tonumber(rank) or -math.huge
  end
  table.sort(chosen, function(a, b)
    if score[a] ~= score[b] then return score[a] > score[b] end
    return place[a] < place[b]
  end)
end

-- Choose entries that were selected, best first. Return how many members were examined.
local function choose_selected()
  local many = redis.call("ZLEXCOUNT", selected, range_of(prefix))
  local top = many > MANY and redis.call("HGET", tops, prefix)
  if top then
    for id in string.gmatch(top, "\2[^\1]*\1([^\1]*)") do
      choose(id)
      if #chosen > limit then break end
    end
    return 0
  end
  local found = many > 0 and matching(selected, prefix, 0, AT_ONCE) or {}
  for _, member in ipairs(found) do choose(id_of(member)) end
  if #chosen > 1 then sort_by_rank() end
  return #found
end

-- Choose entries that were never selected, in alphabetical order.
local function choose_further(count)
  local offset = 0
  while #chosen <= limit and offset do
    local part = matching(entries, prefix, offset, count)
    for _, member in ipairs(part) do choose(id_of(member)) end
    offset = #part == count and offset + count
  end
end

-- Return, for each start of a name, the texts whose prefixes find it: the key, and the key as one word if it has
-- joints.
local function beginnings_of(row)
  local _, key, starts, variants = parts_of(row)
  local found = { { key } }
  for start in string.gmatch(starts, "%d+") do found[#found + 1] = { sub(key, start + 1) } end
  for number, variant in string.gmatch(variants, "\1(%d+) ([^\1]+)") do found[number + 1][2] = variant end
  return found
end

local function begins(texts, word)
  return sub(texts[1], 1, #word) == word or texts[2] and sub(texts[2], 1, #word) == word
end

-- Return whether each word is a prefix of a different start.
local function fits(words, starts)
  local taken = {}
  for _, word in ipairs(words) do
    local found
    for at, texts in ipairs(starts) do
      if not taken[at] and begins(texts, word) then
        found = at
        break
      end
    end
    if not found then return false end
    taken[found] = true
  end
  return true
end

-- Among the members that begin with *word* and were neither seen nor chosen, add those that fit all words to
-- *fitting*.
local function look(index, word, offset, words, seen, fitting)
  local ids = {}
  for _, member in ipairs(matching(index, word, offset, AT_ONCE)) do
    local id = id_of(member)
    if not seen[id] and not place[id] then ids[#ids + 1], seen[id] = id, true end
  end
  for at, shelf in ipairs(shelves_of(ids)) do
    local starts = beginnings_of(row_of(shelf, ids[at]))
    if fits(words, starts) then
      local rank = redis.call("ZSCORE", ranks, ids[at])
      fitting[#fitting + 1] = { id = ids[at], key = starts[1][1], rank = rank and tonumber(rank) or -math.huge }
    end
  end
end

-- Return the names that fit one of the other readings, and whether there may be more. Such a name has all of the
-- words, so it is among the names that have the rarest word.
local function find_otherwise(way)
  local words, rarest, fewest = {}, nil, math.huge
  for word in string.gmatch(way, "[^\1]+") do
    words[#words + 1] = word
    local count = redis.call("ZLEXCOUNT", entries, range_of(word))
    if count < fewest then rarest, fewest = word, count end
  end
  local seen, fitting = {}, {}
  look(selected, rarest, 0, words, seen, fitting)
  for offset = 0, math.min(fewest, MOST) - 1, AT_ONCE do
    look(entries, rarest, offset, words, seen, fitting)
    if #chosen + #fitting > limit and offset + AT_ONCE < fewest then return fitting, true end
  end
  return fitting, fewest > MOST
end

-- Choose names that fit another reading of the prefix. Return whether there may be more.
local function choose_otherwise()
  local found, known, is_more = {}, {}, false
  for _, way in ipairs(others) do
    local fitting, is_cut = find_otherwise(way)
    is_more = is_more or is_cut
    for _, each in ipairs(fitting) do
      if not known[each.id] then found[#found + 1], known[each.id] = each, true end
    end
  end
  table.sort(found, function(a, b)
    if a.rank ~= b.rank then return a.rank > b.rank end
    if a.key ~= b.key then return a.key < b.key end
    return a.id < b.id
  end)
  for _, each in ipairs(found) do choose(each.id) end
  return is_more
end

local function shown()
  local ids, texts = {}, {}
  for at = 1, math.min(limit, #chosen) do ids[at] = chosen[at] end
  for at, shelf in ipairs(shelves_of(ids)) do
    local from, past = find(shelf, "\2" .. ids[at] .. "\1", 1, true)
    texts[at] = sub(shelf, from, find(shelf, "\1", past + 1, true) - 1)
  end
  return table.concat(texts)
end

local version = redis.call("HGET", book, "version")
if not version then return {} end
-- One more entry than asked for shows whether more match.
choose_further(limit + 1 + choose_selected())
local is_more = #chosen <= limit and choose_otherwise()
return { version, (is_more or #chosen > limit) and 1 or 0, shown() }
