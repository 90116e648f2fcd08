-- Note that an entry was selected, or only put it where its rank belongs. Repeated, it says the same again.
-- KEYS[1] book      HASH version, count, when it was loaded
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
local MINUTE, HALF_LIFE = 60000, 30 * 86400 -- milliseconds; seconds
local MANY, BEST, AT_ONCE = 64, 200, 2000 -- from which on the best are kept; so many; of so many where none are yet

local before = redis.call("GET", answered)
if before then return tonumber(before) end
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
  local label, key, starts = string.match(packed, "^[^\1]+\1([^\1]+)\1([^\1]*)\1([^\2]*)", from + 1)
  local members = {}
  if key == "" then key = string.lower(label) end
  for start in string.gmatch(starts, "%d+") do
    members[#members + 1] = string.sub(key, start + 1) .. "\1" .. id
    redis.call("ZADD", into, 0, members[#members])
  end
  return members
end

local function keep(member, prefix)
  local first, last = "[" .. prefix, "[" .. prefix .. "\255"
  if redis.call("ZLEXCOUNT", selected, first, last) <= MANY then return false end
  local top, best, ids, score = redis.call("HGET", tops, prefix), { member }, {}, {}
  local found = not top and redis.call("ZRANGE", selected, first, last, "BYLEX", "LIMIT", 0, AT_ONCE) or {}
  for each in string.gmatch(top or "", "[^\2]+") do found[#found + 1] = each end
  for _, each in ipairs(found) do
    if each ~= member then best[#best + 1] = each end
  end
  for at, each in ipairs(best) do ids[at] = string.match(each, "\1(.*)$") end
  local ranked, is_there = redis.call("ZMSCORE", ranks, unpack(ids)), redis.call("ZMSCORE", selected, unpack(best))
  for at = #best, 1, -1 do
    score[best[at]] = ranked[at] and tonumber(ranked[at]) or -math.huge
    if not is_there[at] then table.remove(best, at) end
  end
  table.sort(best, function(a, b)
    if score[a] ~= score[b] then return score[a] > score[b] end
    return a < b
  end)
  redis.call("HSET", tops, prefix, table.concat(best, "\2", 1, math.min(#best, BEST)))
  return true
end

local said = redis.call("EXISTS", book) == 1 and 0 or -1
local score = rank()
local members = score and index(rows, selected)
if members then
  said = 1
  index(next_rows, next_selected)
  redis.call("ZADD", ranks, string.format("%.17g", score), id)
  for _, member in ipairs(members) do
    for past in string.gmatch(string.match(member, "^[^\1]*"), "[%z\1-\127\194-\244][\128-\191]*()") do
      if not keep(member, string.sub(member, 1, past - 1)) then break end
    end
  end
  local version = math.max(time[1] * 1000000 + time[2], (redis.call("HGET", book, "version") or 0) + 1)
  redis.call("HSET", book, "version", string.format("%.0f", version))
end
redis.call("SET", answered, said, "PX", MINUTE)
return said
