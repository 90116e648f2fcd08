-- Record that an entry was selected, or only move it to where its rank belongs. A repeated call returns the same.
-- KEYS    book rows selected ranks tops next_rows next_selected calls
-- ARGV    id times call
-- USES    answer rows members prefixes version weight
-- RETURNS 1; 0 if it is not in the book; or -1 if there is no such book
times = tonumber(times) -- 0 only moves the entry
local HOUR = 3600000 -- milliseconds
local BEST = 128 -- members that are stored for a prefix
local AT_ONCE = 1000 -- members to examine if none are stored for the prefix yet

-- Return the score including this selection; nil if the entry was never selected.
local function new_score()
  local score = tonumber(redis.call("ZSCORE", ranks, id) or "")
  if times == 0 then return score end
  local now = HALF_LIVES + math.log(times) / math.log(2)
  if not score then return now end
  return math.max(now, score) + math.log(1 + 2 ^ -math.abs(now - score)) / math.log(2)
end

-- Put the members of the entry among the selected ones, and return them; nil if the entry is not among these rows.
local function join(hash, index)
  local row = row_of(redis.call("HGET", hash, shelf_of(id)) or "", id)
  if not row then return nil end
  local members = members_of(id, row)
  for _, member in ipairs(members) do redis.call("ZADD", index, 0, member) end
  return members
end

-- Return the best members that match a prefix, as items.
local function best_of(prefix)
  local first, last = range_of(prefix)
  local found, ids, ranked = redis.call("ZRANGE", selected, first, last, "BYLEX", "LIMIT", 0, AT_ONCE), {}, {}
  for at, each in ipairs(found) do ids[at] = string.match(each, "\1(.*)$") end
  for at, each in ipairs(redis.call("ZMSCORE", ranks, unpack(ids))) do
    if each then ranked[#ranked + 1] = { "\2" .. found[at] .. "\1" .. each, tonumber(each) } end
  end
  table.sort(ranked, function(a, b)
    if a[2] ~= b[2] then return a[2] > b[2] end
    return a[1] < b[1]
  end)
  local items = {}
  for at = 1, math.min(#ranked, BEST) do items[at] = ranked[at][1] end
  return table.concat(items)
end

local function count_of(items) return select(2, string.gsub(items, "\2", "")) end

-- Insert a member among the best, at the position of its score.
local function insert(top, member, score)
  local place = #top + 1
  for at, other in string.gmatch(top, "()\2[^\1]*\1[^\1]*\1([^\2]*)") do
    if tonumber(other) < score then
      place = at
      break
    end
  end
  local item = "\2" .. member .. "\1" .. string.format("%.17g", score)
  top = string.sub(top, 1, place - 1) .. item .. string.sub(top, place)
  return count_of(top) > BEST and string.match(top, "^(.*)\2") or top
end

-- Store a member among the best of a prefix. Return false if too few members match the prefix.
local function keep(member, prefix, score)
  local many = redis.call("ZLEXCOUNT", selected, range_of(prefix))
  if many <= MANY then return false end
  local top = redis.call("HGET", tops, prefix) or ""
  local count = count_of(top)
  -- Too many members match to examine them all: the stored best are better than the best of a sample.
  if count == 0 or count < BEST / 2 and many <= AT_ONCE then top = best_of(prefix) end
  redis.call("HSET", tops, prefix, insert(without(top, member), member, score))
  return true
end

local before = answer_before()
if before then return tonumber(before) end
if redis.call("EXISTS", book) == 0 then return -1 end
local score = new_score()
local members = score and join(rows, selected)
if not members then return answer(0) end
if join(next_rows, next_selected) then redis.call("PEXPIRE", next_selected, HOUR) end
redis.call("ZADD", ranks, string.format("%.17g", score), id)
for _, member in ipairs(members) do
  for past in ends_of(member) do
    if past > DEEP + 1 or not keep(member, string.sub(member, 1, past - 1), score) then break end
  end
end
redis.call("HSET", book, "version", next_version())
return answer(1)
