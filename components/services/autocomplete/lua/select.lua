-- Note that an entry was selected, or only put it where its rank belongs. Repeated, it says the same again.
-- KEYS[1] book      HASH version, count, when it was loaded, by which rules names were folded
-- KEYS[2] rows      HASH part of a digest of the id -> rows, each after \2
-- KEYS[3] selected  ZSET the members of entries that were ever selected
-- KEYS[4] ranks     ZSET id by the logarithm of its selections, as they decay
-- KEYS[5] tops      HASH prefix that many of the selected match -> the best of them
-- KEYS[6] next_rows      HASH as rows, of the load that runs
-- KEYS[7] next_selected  ZSET as selected, of that load
-- KEYS[8] answered  STRING what this call was answered
-- ARGV[1] id
-- ARGV[2] how often it was selected; 0 to put it where it belongs, if it ever was
-- Returns 1, or 0 if it is not in the book, or -1 if there is no such book
local book, rows, selected, ranks, tops = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local next_rows, next_selected, answered = KEYS[6], KEYS[7], KEYS[8]
local id, times = ARGV[1], tonumber(ARGV[2])
local MINUTE, HOUR, HALF_LIFE = 60000, 3600000, 30 * 86400 -- milliseconds; seconds
local MANY, BEST, AT_ONCE = 64, 128, 1000 -- from which on the best are kept; so many; of so many where none are yet
local DEEP = 24 -- bytes of the longest prefix that they are kept for: a long label has hundreds

local before = redis.call("GET", answered)
if before then return tonumber(before) end
if redis.call("EXISTS", book) == 0 then return -1 end
local time = redis.call("TIME")
local shelf = string.sub(redis.sha1hex(id), 1, 4)

-- Of what was selected once, k half-lives ago, the weight is 2^-k: so its logarithm, counted from a fixed instant,
-- does not change with time, and order needs no sweeping.
local function rank()
  local score = redis.call("ZSCORE", ranks, id)
  score = score and tonumber(score)
  if times == 0 then return score end
  local now = (time[1] + time[2] / 1000000) / HALF_LIFE + math.log(times) / math.log(2)
  if not score then return now end
  return math.max(now, score) + math.log(1 + 2 ^ -math.abs(now - score)) / math.log(2)
end

local function index(shelves, into)
  local packed = redis.call("HGET", shelves, shelf) or ""
  local from = string.find(packed, "\2" .. id .. "\1", 1, true)
  if not from then return nil end
  local stop = (string.find(packed, "\2", from + 1, true) or #packed + 1) - 1
  local row = string.sub(packed, from + 1, stop)
  local label, key, starts, variants = string.match(row, "^[^\1]+\1([^\1]+)\1([^\1]*)\1?([^\1]*)(.*)$")
  if key == "" then key = string.lower(label) end
  local members = { key .. "\1" .. id }
  for start in string.gmatch(starts, "%d+") do
    members[#members + 1] = string.sub(key, start + 1) .. "\1" .. id
  end
  for variant in string.gmatch(variants, "\1%d+ ([^\1]+)") do members[#members + 1] = variant .. "\1" .. id end
  for _, member in ipairs(members) do redis.call("ZADD", into, 0, member) end
  return members
end

-- The best of what matches, each after \2, with its score after \1.
local function best_of(first, last)
  local found = redis.call("ZRANGE", selected, first, last, "BYLEX", "LIMIT", 0, AT_ONCE)
  local ids, ranked = {}, {}
  for at, each in ipairs(found) do ids[at] = string.match(each, "\1(.*)$") end
  for at, each in ipairs(redis.call("ZMSCORE", ranks, unpack(ids))) do
    if each then ranked[#ranked + 1] = { "\2" .. found[at] .. "\1" .. each, tonumber(each) } end
  end
  table.sort(ranked, function(a, b)
    if a[2] ~= b[2] then return a[2] > b[2] end
    return a[1] < b[1]
  end)
  local texts = {}
  for at = 1, math.min(#ranked, BEST) do texts[at] = ranked[at][1] end
  return table.concat(texts)
end

local function keep(member, prefix, score)
  local first, last = "[" .. prefix, "[" .. prefix .. "\255"
  local many = redis.call("ZLEXCOUNT", selected, first, last)
  if many <= MANY then return false end
  local top = redis.call("HGET", tops, prefix) or ""
  local _, count = string.gsub(top, "\2", "")
  -- What is left of the best of more than can be looked at is better than the best of some.
  if count == 0 or count < BEST / 2 and many <= AT_ONCE then top = best_of(first, last) end
  local from, to = string.find(top, "\2" .. member .. "\1", 1, true)
  if from then top = string.sub(top, 1, from - 1) .. string.sub(top, string.find(top, "\2", to, true) or #top + 1) end
  local place = #top + 1
  for at, other in string.gmatch(top, "()\2[^\1]*\1[^\1]*\1([^\2]*)") do
    if tonumber(other) < score then
      place = at
      break
    end
  end
  local item = "\2" .. member .. "\1" .. string.format("%.17g", score)
  top = string.sub(top, 1, place - 1) .. item .. string.sub(top, place)
  _, count = string.gsub(top, "\2", "")
  if count > BEST then top = string.match(top, "^(.*)\2") end
  redis.call("HSET", tops, prefix, top)
  return true
end

local said, score = 0, rank()
local members = score and index(rows, selected)
if members then
  said = 1
  if index(next_rows, next_selected) then redis.call("PEXPIRE", next_selected, HOUR) end
  redis.call("ZADD", ranks, string.format("%.17g", score), id)
  for _, member in ipairs(members) do
    for past in string.gmatch(string.match(member, "^[^\1]*"), "[%z\1-\127\194-\244][\128-\191]*()") do
      if past > DEEP + 1 or not keep(member, string.sub(member, 1, past - 1), score) then break end
    end
  end
  local version = math.max(time[1] * 1000000 + time[2], (redis.call("HGET", book, "version") or 0) + 1)
  redis.call("HSET", book, "version", string.format("%.0f", version))
end
redis.call("SET", answered, said, "PX", MINUTE)
return said
