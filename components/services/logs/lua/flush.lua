-- Add the counts of chunks to tables and finish the chunks, all or nothing. A repeated call returns the same.
-- KEYS    stream chunk counted aggregations state room flushed counts
-- ARGV    name consumer batch count given...
-- USES    time needed held room
-- RETURNS the chunks that the consumer does not hold; if there are any, nothing was changed
-- *given* has the ids of *count* chunks; then, for each table, its name and a text of its members and their counts,
-- with a NUL after each member and each count. Counts for the table "live" go to the table of this minute.
local REMEMBERED, LIVE = 3600, 3600 -- seconds
local last = flushed .. consumer
count = tonumber(count)

local function not_held(about)
  local lost = {}
  for at = 1, count do
    if not about or not held(given[at], consumer) then lost[#lost + 1] = given[at] end
  end
  return lost
end

local function key_of(name)
  if name ~= "live" then return counts .. name end
  return counts .. "live:" .. text(math.floor(NOW / 60000))
end

if redis.call("GET", last) == batch then return {} end
local about = taking_part()
local lost = not_held(about)
if #lost > 0 then return lost end

for at = count + 1, #given, 2 do -- a key of another type must raise its error before anything is written
  local key = key_of(given[at])
  local kind = redis.call("TYPE", key).ok
  if kind ~= "none" and kind ~= "hash" then return redis.error_reply("WRONGTYPE " .. key) end
end
-- A server that is out of memory runs a script only if its first write needs no memory. Finished chunks make room.
redis.call("DEL", last)
for at = count + 1, #given, 2 do
  local key = key_of(given[at])
  for member, more in string.gmatch(given[at + 1], "([^%z]*)%z([^%z]*)%z") do
    redis.call("HINCRBY", key, member, more)
  end
  if given[at] == "live" then redis.call("EXPIRE", key, LIVE) end
end

local numbers, freed = all_numbers(), 0
for at = 1, count do
  redis.call("XACK", stream, name, given[at])
  if be_done(given[at], about.number, numbers) then freed = freed + 1 end
end
redis.call("SET", last, batch, "EX", REMEMBERED)
if freed > 0 then wake_producer() end
return {}
