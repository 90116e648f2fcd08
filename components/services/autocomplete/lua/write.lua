-- Let entries join, change or leave a book, or the load beside it. Repeated, it says the same again.
-- KEYS[1] book      HASH version, count, when it was loaded, by which rules names were folded
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
-- ARGV[3] the number of the rules by which they were folded
-- ARGV[4..] rows, at most 250: id, label, search key if that is not the label with A to Z in small letters, in bytes
--           where words start after its beginning, if any do; then, for each start where words can be written as one,
--           the number of the start, a blank, and the key from there on so written; with \1 between. An id alone
--           leaves
-- Returns with blanks between: how many were not there, how many were, 1 if the book is in the list of all, or is not
--         there at all; or, of a load that no longer runs, "superseded"
local book, entries, rows, selected, ranks, tops = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local loading, next_entries, next_rows = KEYS[7], KEYS[8], KEYS[9]
local next_selected, changed, answered = KEYS[10], KEYS[11], KEYS[12]
local token, mode, folding = ARGV[1], ARGV[2], ARGV[3]
local MINUTE, HOUR = 60000, 3600000 -- milliseconds
local MANY, DEEP = 64, 24 -- of the selected, from which on the best are kept; bytes of the longest such prefix

local before = redis.call("GET", answered)
if before then return before end
local is_load, runs = token ~= "", redis.call("HGET", loading, "token")
if is_load and runs ~= token then return "superseded" end

local function members(row)
  local id, label, key, starts, variants = string.match(row, "^([^\1]+)\1([^\1]+)\1([^\1]*)\1?([^\1]*)(.*)$")
  if key == "" then key = string.lower(label) end
  local found = { key .. "\1" .. id }
  for start in string.gmatch(starts, "%d+") do found[#found + 1] = string.sub(key, start + 1) .. "\1" .. id end
  for variant in string.gmatch(variants, "\1%d+ ([^\1]+)") do found[#found + 1] = variant .. "\1" .. id end
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

local ids, shelves, is_ranked = {}, {}, {}
for at = 4, #ARGV do
  ids[at - 3] = string.match(ARGV[at], "^[^\1]+")
  shelves[at - 3] = string.sub(redis.sha1hex(ids[at - 3]), 1, 4)
end
for at, rank in ipairs(redis.call("ZMSCORE", ranks, unpack(ids))) do is_ranked[ids[at]] = rank end

-- The book or the load: what it has on the shelves of these ids, read at once, and what is to be written at once.
local function open(index, hash, picked)
  local its = { index = index, hash = hash, picked = picked, packed = {}, is_new = {}, grown = 0 }
  its.joining = { [index] = {}, [picked] = {} }
  for at, packed in ipairs(redis.call("HMGET", hash, unpack(shelves))) do its.packed[shelves[at]] = packed or "" end
  return its
end

local function join(its)
  for index, members in pairs(its.joining) do
    if #members > 0 then redis.call("ZADD", index, unpack(members)) end
    its.joining[index] = {}
  end
end

local function close(its)
  join(its)
  local written = {}
  for shelf in pairs(its.is_new) do
    if its.packed[shelf] == "" then
      redis.call("HDEL", its.hash, shelf)
    else
      written[#written + 1], written[#written + 2] = shelf, its.packed[shelf]
    end
  end
  if #written > 0 then redis.call("HSET", its.hash, unpack(written)) end
end

local function put(its, at, may_join)
  local id, row, packed = ids[at], ARGV[at + 3], its.packed[shelves[at]]
  local from, past = string.find(packed, "\2" .. id .. "\1", 1, true)
  local stays = row ~= id
  if not from and not (stays and may_join) then return false end
  if from then
    local stop = string.find(packed, "\2", past, true) or #packed + 1
    local old = string.sub(packed, from + 1, stop - 1)
    if old == row then return true end
    packed = string.sub(packed, 1, from - 1) .. string.sub(packed, stop)
    join(its)
    for _, member in ipairs(members(old)) do
      redis.call("ZREM", its.index, member)
      unselect(member, its.picked)
    end
  end
  if stays then
    for _, index in ipairs({ its.index, is_ranked[id] and its.picked or nil }) do
      local joining = its.joining[index]
      for _, member in ipairs(members(row)) do
        joining[#joining + 1], joining[#joining + 2] = 0, member
      end
    end
    packed = packed .. "\2" .. row
  end
  its.packed[shelves[at]], its.is_new[shelves[at]] = packed, true
  its.grown = its.grown + (stays and 1 or 0) - (from and 1 or 0)
  return from ~= nil
end

local now = not is_load and open(entries, rows, selected)
local coming = runs and open(next_entries, next_rows, next_selected)
local is_told = is_load and redis.call("SMISMEMBER", changed, unpack(ids))
local there = 0
for at, id in ipairs(ids) do
  local was_there = false
  if now then
    was_there = put(now, at, mode == "put")
    if ARGV[at + 3] == id then
      redis.call("ZREM", ranks, id)
      is_ranked[id] = false
    end
    if coming and (was_there or mode == "put") then
      put(coming, at, true)
      redis.call("SADD", changed, id)
    end
  elseif is_told[at] == 0 then
    was_there = put(coming, at, true)
  end
  if was_there then there = there + 1 end
end
if coming then
  close(coming)
  redis.call("HINCRBY", loading, "count", coming.grown)
  for _, key in ipairs({ loading, next_entries, next_rows, next_selected, changed }) do
    redis.call("PEXPIRE", key, HOUR)
  end
end
if now and next(now.is_new) then
  close(now)
  local time = redis.call("TIME")
  local version = math.max(time[1] * 1000000 + time[2], (redis.call("HGET", book, "version") or 0) + 1)
  if redis.call("EXISTS", book) == 0 then redis.call("HSET", book, "folding", folding) end
  redis.call("HSET", book, "version", string.format("%.0f", version))
  redis.call("HINCRBY", book, "count", now.grown)
end
local is_listed = redis.call("HGET", book, "is_listed") or 1 - redis.call("EXISTS", book)
local said = #ARGV - 3 - there .. " " .. there .. " " .. is_listed
if runs or redis.call("EXISTS", book) == 1 then redis.call("SET", answered, said, "PX", MINUTE) end
return said
