-- Be done, uncounted, with chunks that an aggregation has given up. Repeated, it changes nothing.
-- KEYS[1] stream        STREAM of descriptors
-- KEYS[2] chunk         STRING, prefix to an id: lines, compressed
-- KEYS[3] counted       HASH id -> numbers of the aggregations that have counted it
-- KEYS[4] aggregations  HASH name -> number, milliseconds of the lease
-- KEYS[5] state         HASH bytes, chunks
-- KEYS[6] room          LIST that wakes a producer
-- KEYS[7] dead          ZSET id, blank, aggregation
-- ARGV[1] name of the aggregation
-- ARGV[2..] ids of chunks
-- Returns how many
local stream, chunk, counted, aggregations = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local state, room, dead = KEYS[5], KEYS[6], KEYS[7]
local name = ARGV[1]

local own = string.match(redis.call("HGET", aggregations, name) or "", "^%d+")
if not own then return 0 end
local numbers, discarded = {}, 0
for _, about in ipairs(redis.call("HVALS", aggregations)) do numbers[#numbers + 1] = string.match(about, "^%d+") end
for at = 2, #ARGV do
  local id = ARGV[at]
  if redis.call("ZREM", dead, id .. " " .. name) == 1 then
    local by, is_needed = (redis.call("HGET", counted, id) or " ") .. own .. " ", false
    for _, number in ipairs(numbers) do
      is_needed = is_needed or not string.find(by, " " .. number .. " ", 1, true)
    end
    if is_needed then
      redis.call("HSET", counted, id, by)
    else
      redis.call("HINCRBY", state, "bytes", 0 - redis.call("STRLEN", chunk .. id))
      redis.call("HINCRBY", state, "chunks", -1)
      redis.call("XDEL", stream, id)
      redis.call("UNLINK", chunk .. id)
      redis.call("HDEL", counted, id)
    end
    discarded = discarded + 1
  end
end
if discarded > 0 and redis.call("LLEN", room) == 0 then redis.call("RPUSH", room, "1") end
return discarded
