-- Add the counts of chunks to tables and finish the chunks, all or nothing. A repeated call returns the same.
-- KEYS    stream chunk counted aggregations state room flushed counts
-- ARGV    name consumer batch count given...
-- USES    needed held room
-- RETURNS the chunks that the consumer does not hold; if there are any, nothing was changed
-- *given* has the ids of *count* chunks; then, for each table, its name and a text of its members and their counts,
-- with a NUL after each member and each count.
-- A table "values:…" has members "<slice>/<status>/<value>", and a limit of different values: the first ones are
-- kept, and all others are added up in the value "". A value that came once when there was no room stays among these,
-- so the counts of a value that is kept are of all its lines. The table itself has the sums of values, from the slice
-- "*", and each slice has a key of its own.
local REMEMBERED = 3600 -- seconds
local KEPT = 1000 -- values
local last = flushed .. consumer
count = tonumber(count)

local function not_held(about)
  local lost = {}
  for at = 1, count do
    if not about or not held(given[at], consumer) then lost[#lost + 1] = given[at] end
  end
  return lost
end

local function has_values(name) return string.find(name, "^values:") ~= nil end

-- Return all keys of a table, and with *members* those of its slices.
local function keys_of(name, members)
  local key = counts .. name
  local keys, seen = { key }, {}
  if not has_values(name) then return keys end
  for slice in string.gmatch(members, "([^/%z]*)/[^%z]*%z[^%z]*%z") do
    if not seen[slice] then keys[#keys + 1] = key .. ":" .. slice end
    seen[slice] = true
  end
  return keys
end

local function add_values(key, members)
  local known = {}
  for slice, status, value, more in string.gmatch(members, "([^/%z]*)/([^/%z]*)/([^%z]*)%z([^%z]*)%z") do
    if not known[value] then
      local has_room = redis.call("HLEN", key) < KEPT and redis.call("HEXISTS", key, "") == 0
      known[value] = (has_room or redis.call("HEXISTS", key, value) == 1) and value or ""
      redis.call("HINCRBY", key, known[value], 0)
    end
    if slice == "*" then redis.call("HINCRBY", key, known[value], more) end
    redis.call("HINCRBY", key .. ":" .. slice, status .. "/" .. known[value], more)
  end
end

if redis.call("GET", last) == batch then return {} end
local about = taking_part()
local lost = not_held(about)
if #lost > 0 then return lost end

for at = count + 1, #given, 2 do -- a key of another type must raise its error before anything is written
  for _, key in ipairs(keys_of(given[at], given[at + 1])) do
    local kind = redis.call("TYPE", key).ok
    if kind ~= "none" and kind ~= "hash" then return redis.error_reply("WRONGTYPE " .. key) end
  end
end
-- A server that is out of memory runs a script only if its first write needs no memory. Finished chunks make room.
redis.call("DEL", last)
for at = count + 1, #given, 2 do
  local name, members = given[at], given[at + 1]
  if has_values(name) then
    add_values(counts .. name, members)
  else
    for member, more in string.gmatch(members, "([^%z]*)%z([^%z]*)%z") do
      redis.call("HINCRBY", counts .. name, member, more)
    end
  end
end

local numbers, freed = all_numbers(), 0
for at = 1, count do
  redis.call("XACK", stream, name, given[at])
  if be_done(given[at], about.number, numbers) then freed = freed + 1 end
end
redis.call("SET", last, batch, "EX", REMEMBERED)
if freed > 0 then wake_producer() end
return {}
