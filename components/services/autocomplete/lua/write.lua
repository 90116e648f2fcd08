-- Add, change or remove entries of a book, or of the running load. A repeated call returns the same.
-- KEYS    book entries rows selected ranks tops loading next_entries next_rows next_selected changed calls
-- ARGV    token mode folding call given...
-- USES    answer rows members prefixes version
-- RETURNS with blanks between: how many were new, how many existed, 1 if the book is listed or does not
--         exist, else 0; or, for a load that no longer runs, "superseded"
-- *token* is that of the load that the entries belong to, or empty. *mode* is "put", or "rename" to change only
-- existing entries. At most 250 entries are given: a row adds or changes its entry, an id alone removes it.
local HOUR = 3600000 -- milliseconds
local ids, shelf_at, is_ranked = {}, {}, {}

-- Remove a member from the selected ones, and from the best of each prefix. If few members still match a prefix, its
-- best are no longer stored.
local function unselect(member, index)
  if redis.call("ZREM", index, member) == 0 or index ~= selected then return end
  for past in ends_of(member) do
    local prefix = string.sub(member, 1, past - 1)
    local many = redis.call("ZLEXCOUNT", selected, range_of(prefix))
    local top = redis.call("HGET", tops, prefix) or ""
    if many <= MANY then redis.call("HDEL", tops, prefix) end
    if many < MANY or past > DEEP + 1 then return end
    if many > MANY and locate(top, member) then redis.call("HSET", tops, prefix, without(top, member)) end
  end
end

local function read_ids()
  for at, row in ipairs(given) do
    ids[at] = string.match(row, "^[^\1]+")
    shelf_at[at] = shelf_of(ids[at])
  end
  for at, rank in ipairs(redis.call("ZMSCORE", ranks, unpack(ids))) do is_ranked[ids[at]] = rank end
end

-- Return one side, the book or the load: the shelves of these ids, read in one call, and the changes to be written in
-- one call.
local function open(index, hash, picked)
  local side = { index = index, hash = hash, picked = picked, shelves = {}, is_new = {}, grown = 0 }
  side.joining = { [index] = {}, [picked] = {} }
  for at, shelf in ipairs(redis.call("HMGET", hash, unpack(shelf_at))) do side.shelves[shelf_at[at]] = shelf or "" end
  return side
end

local function join(side)
  for index, members in pairs(side.joining) do
    if #members > 0 then redis.call("ZADD", index, unpack(members)) end
    side.joining[index] = {}
  end
end

local function close(side)
  join(side)
  local written = {}
  for field in pairs(side.is_new) do
    if side.shelves[field] == "" then
      redis.call("HDEL", side.hash, field)
    else
      written[#written + 1], written[#written + 2] = field, side.shelves[field]
    end
  end
  if #written > 0 then redis.call("HSET", side.hash, unpack(written)) end
end

-- Add, change or remove an entry on one side. Return whether it existed.
local function put(side, at, may_join)
  local id, row, shelf = ids[at], given[at], side.shelves[shelf_at[at]]
  local old, stays = row_of(shelf, id), row ~= id
  if not old and not (stays and may_join) then return false end
  if old == row then return true end
  if old then
    shelf = without(shelf, id)
    join(side)
    for _, member in ipairs(members_of(id, old)) do
      redis.call("ZREM", side.index, member)
      unselect(member, side.picked)
    end
  end
  if stays then
    shelf = shelf .. "\2" .. row
    local members = members_of(id, row)
    for _, index in ipairs({ side.index, is_ranked[id] and side.picked or nil }) do
      local joining = side.joining[index]
      for _, member in ipairs(members) do joining[#joining + 1], joining[#joining + 2] = 0, member end
    end
  end
  side.shelves[shelf_at[at]], side.is_new[shelf_at[at]] = shelf, true
  side.grown = side.grown + (stays and 1 or 0) - (old and 1 or 0)
  return old ~= nil
end

-- Put an entry into the book, and into the running load. Return whether it existed.
local function change(now, coming, at)
  local was_there = put(now, at, mode == "put")
  if given[at] == ids[at] then
    redis.call("ZREM", ranks, ids[at])
    is_ranked[ids[at]] = false
  end
  if coming and (was_there or mode == "put") then
    put(coming, at, true)
    redis.call("SADD", changed, ids[at])
  end
  return was_there
end

-- Put the entries of a load that have not changed since it began. Return how many of all entries existed.
local function load_part(coming)
  local there = 0
  for at, has_changed in ipairs(redis.call("SMISMEMBER", changed, unpack(ids))) do
    if has_changed == 0 and put(coming, at, true) then there = there + 1 end
  end
  return there
end

local function end_load_part(coming)
  close(coming)
  redis.call("HINCRBY", loading, "count", coming.grown)
  for _, key in ipairs({ loading, next_entries, next_rows, next_selected, changed }) do
    redis.call("PEXPIRE", key, HOUR)
  end
end

local function end_change(now)
  close(now)
  local version = next_version()
  if redis.call("EXISTS", book) == 0 then redis.call("HSET", book, "folding", folding) end
  redis.call("HSET", book, "version", version)
  redis.call("HINCRBY", book, "count", now.grown)
end

local before = answer_before()
if before then return before end
local is_load, runs = token ~= "", redis.call("HGET", loading, "token")
if is_load and runs ~= token then return "superseded" end

read_ids()
local coming = runs and open(next_entries, next_rows, next_selected)
local there = 0
if is_load then
  there = load_part(coming)
else
  local now = open(entries, rows, selected)
  for at = 1, #ids do
    if change(now, coming, at) then there = there + 1 end
  end
  if next(now.is_new) then end_change(now) end
end
if coming then end_load_part(coming) end
local is_listed = redis.call("HGET", book, "is_listed") or 1 - redis.call("EXISTS", book)
local said = #given - there .. " " .. there .. " " .. is_listed
if runs or redis.call("EXISTS", book) == 1 then answer(said) end
return said
