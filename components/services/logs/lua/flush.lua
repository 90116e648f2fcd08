-- Add up what was counted in chunks and be done with these, all or nothing. Sent again, it says the same.
-- KEYS[1] stream        STREAM of descriptors
-- KEYS[2] chunk         STRING, prefix to an id: lines, compressed
-- KEYS[3] counted       HASH id -> numbers of the aggregations that have counted it
-- KEYS[4] aggregations  HASH name -> number, milliseconds of the lease
-- KEYS[5] state         HASH bytes, chunks
-- KEYS[6] room          LIST that wakes a producer
-- KEYS[7] flushed       STRING the last batch of this consumer
-- KEYS[8] tables        HASH, prefix to the name of a table: member -> count
-- ARGV[1] name of the aggregation
-- ARGV[2] consumer
-- ARGV[3] batch
-- ARGV[4] how many chunks
-- ARGV[5..] their ids; then in turn the name of a table, and of its members each with its count, NUL after each
-- Returns the ids that the consumer does not hold: if there are any, nothing was changed
local stream, chunk, counted, aggregations = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local state, room, flushed, tables = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local name, consumer, batch, last = ARGV[1], ARGV[2], ARGV[3], 4 + ARGV[4]
local REMEMBERED = 3600 -- s

if redis.call("GET", flushed) == batch then return {} end
local own = string.match(redis.call("HGET", aggregations, name) or "", "^%d+")
local lost = {}
for at = 5, last do
  local id = ARGV[at]
  if not own or #redis.call("XPENDING", stream, name, id, id, 1, consumer) == 0 then lost[#lost + 1] = id end
end
if #lost > 0 then return lost end

for at = last + 1, #ARGV, 2 do -- a table that is something else must be told before anything is written
  local kind = redis.call("TYPE", tables .. ARGV[at]).ok
  if kind ~= "none" and kind ~= "hash" then return redis.error_reply("WRONGTYPE " .. tables .. ARGV[at]) end
end
redis.call("DEL", flushed) -- first: it is allowed where memory is full, and after one write all are, which make room
for at = last + 1, #ARGV, 2 do
  local key, sums = tables .. ARGV[at], ARGV[at + 1]
  for member, count in string.gmatch(sums, "([^%z]*)%z([^%z]*)%z") do redis.call("HINCRBY", key, member, count) end
end

local numbers, freed = {}, 0
for _, about in ipairs(redis.call("HVALS", aggregations)) do numbers[#numbers + 1] = string.match(about, "^%d+") end
for each = 5, last do
  local id = ARGV[each]
  redis.call("XACK", stream, name, id)
  local by, is_needed = (redis.call("HGET", counted, id) or " ") .. own .. " ", false
  for _, number in ipairs(numbers) do is_needed = is_needed or not string.find(by, " " .. number .. " ", 1, true) end
  if is_needed then
    redis.call("HSET", counted, id, by)
  else
    redis.call("HINCRBY", state, "bytes", 0 - redis.call("STRLEN", chunk .. id))
    redis.call("HINCRBY", state, "chunks", -1)
    redis.call("XDEL", stream, id)
    redis.call("UNLINK", chunk .. id)
    redis.call("HDEL", counted, id)
    freed = freed + 1
  end
end
redis.call("SET", flushed, batch, "EX", REMEMBERED)
if freed > 0 and redis.call("LLEN", room) == 0 then redis.call("RPUSH", room, "1") end
return {}
