-- Let entries join, change or leave a book, or the load beside it. Repeated, it says the same again.
-- KEYS[1] book      HASH version, count, when it was loaded
-- KEYS[2] entries   ZSET search key, \1, id: from the beginning and from each word on
-- KEYS[3] rows      HASH part of a digest of the id -> rows, each after \2
-- KEYS[4] selected  ZSET the members of entries that were ever selected
-- KEYS[5] ranks     ZSET id by the logarithm of its selections, as they decay
-- KEYS[6] tops      HASH prefix that many of the selected match -> the best of them
-- KEYS[7] loading   HASH token and count of the load that runs
-- KEYS[8] next_entries   ZSET as entries, of that load
-- KEYS[9] next_rows      HASH as rows, of that load
-- KEYS[10] next_selected ZSET as selected, of that load
-- KEYS[11] changed  SET ids that changed while it runs
-- KEYS[12] answered STRING what this call was answered
-- ARGV[1] token of the load that this is a part of; "" if it is none
-- ARGV[2] put, or rename for what is there only
-- ARGV[3..] rows: id, label, search key if that is not the label with A to Z in small letters, in bytes where words
--         start after its beginning; with \1 between. An id alone leaves
-- Returns with blanks between: how many were not there, how many were, 1 if the book is in the list of all, or is not
--         there at all; or, of a load that no longer runs, "superseded"
local book, entries, rows, selected, ranks, tops = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local loading, next_entries, next_rows = KEYS[7], KEYS[8], KEYS[9]
local next_selected, changed, answered = KEYS[10], KEYS[11], KEYS[12]
local token, mode = ARGV[1], ARGV[2]
local MINUTE, HOUR = 60000, 3600000 -- milliseconds
local MANY, DEEP = 64, 24 -- of the selected, from which on the best are kept; bytes of the longest such prefix

local before = redis.call("GET", answered)
if before then return before end
local is_load, runs = token ~= "", redis.call("HGET", loading, "token")
if is_load and runs ~= token then return "superseded" end

local function members(row)
  local id, label, key, starts = string.match(row, "^([^\1]+)\1([^\1]+)\1([^\1]*)\1(.*)$")
  if key == "" then key = string.lower(label) end
  local found = { key .. "\1" .. id }
  for start in string.gmatch(starts, "%d+") do found[#found + 1] = string.sub(key, start + 1) .. "\1" .. id end
  return found
end

-- It leaves the best of each prefix; where no longer many match, they are not kept.
local function unselect(member, index)
  if redis.call("ZREM", index, member) == 0 or index ~= selected then return end
  for past in string.gmatch(string.match(member, "^[^\1]*"), "[%z\1-\127\194-\244][\128-\191]*()") do
    local prefix = string.sub(member, 1, past - 1)
    local many = redis.call("ZLEXCOUNT", selected, "[" .. prefix, "[" .. prefix .. "\255")
    local top = redis.call("HGET", tops, prefix) or ""
    local from, to = string.find(top, "\2" .. member .. "\1", 1, true)
    if many <= MANY then redis.call("HDEL", tops, prefix) end
    if many < MANY or past > DEEP + 1 then return end
    if from and many > MANY then
      to = string.find(top, "\2", to, true) or #top + 1
      redis.call("HSET", tops, prefix, string.sub(top, 1, from - 1) .. string.sub(top, to))
    end
  end
end

local grown, has_changed = { [entries] = 0, [next_entries] = 0 }, false
local function put(index, shelves, picked, id, row, may_join)
  local shelf = string.sub(redis.sha1hex(id), 1, 4)
  local packed = redis.call("HGET", shelves, shelf) or ""
  local from, past = string.find(packed, "\2" .. id .. "\1", 1, true)
  local stays = row ~= id
  if not from and not (stays and may_join) then return false end
  if from then
    local stop = string.find(packed, "\2", past, true) or #packed + 1
    local old = string.sub(packed, from + 1, stop - 1)
    if old == row then return true end
    packed = string.sub(packed, 1, from - 1) .. string.sub(packed, stop)
    for _, member in ipairs(members(old)) do
      redis.call("ZREM", index, member)
      unselect(member, picked)
    end
  end
  if stays then
    local is_ranked = redis.call("ZSCORE", ranks, id)
    for _, member in ipairs(members(row)) do
      redis.call("ZADD", index, 0, member)
      if is_ranked then redis.call("ZADD", picked, 0, member) end
    end
    packed = packed .. "\2" .. row
  end
  if packed == "" then redis.call("HDEL", shelves, shelf) else redis.call("HSET", shelves, shelf, packed) end
  grown[index] = grown[index] + (stays and 1 or 0) - (from and 1 or 0)
  has_changed = has_changed or index == entries
  return from ~= nil
end

local there = 0
for at = 3, #ARGV do
  local row = ARGV[at]
  local id = string.match(row, "^[^\1]+")
  local was_there = false
  if not is_load then
    was_there = put(entries, rows, selected, id, row, mode == "put")
    if row == id then redis.call("ZREM", ranks, id) end
    if runs and (was_there or mode == "put") then
      put(next_entries, next_rows, next_selected, id, row, true)
      redis.call("SADD", changed, id)
    end
  elseif redis.call("SISMEMBER", changed, id) == 0 then
    was_there = put(next_entries, next_rows, next_selected, id, row, true)
  end
  if was_there then there = there + 1 end
end
if runs then
  redis.call("HINCRBY", loading, "count", grown[next_entries])
  for _, key in ipairs({ loading, next_entries, next_rows, next_selected, changed }) do
    redis.call("PEXPIRE", key, HOUR)
  end
end
if has_changed then
  local time = redis.call("TIME")
  local version = math.max(time[1] * 1000000 + time[2], (redis.call("HGET", book, "version") or 0) + 1)
  redis.call("HSET", book, "version", string.format("%.0f", version))
  redis.call("HINCRBY", book, "count", grown[entries])
end
local is_there = redis.call("EXISTS", book)
local is_listed = redis.call("HGET", book, "is_listed") or 1 - is_there
local said = #ARGV - 2 - there .. " " .. there .. " " .. is_listed
if runs or is_there == 1 then redis.call("SET", answered, said, "PX", MINUTE) end
return said
