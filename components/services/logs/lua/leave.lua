-- Let an aggregation take part no longer, and free chunks that only it still needed, a page at a time.
-- KEYS[1] stream        STREAM of descriptors
-- KEYS[2] chunk         STRING, prefix to an id: lines, compressed
-- KEYS[3] counted       HASH id -> numbers of the aggregations that have counted it
-- KEYS[4] aggregations  HASH name -> number, milliseconds of the lease
-- KEYS[5] state         HASH bytes, chunks
-- KEYS[6] room          LIST that wakes a producer
-- KEYS[7] dead          ZSET id, blank, aggregation
-- ARGV[1] name of the aggregation
-- ARGV[2] id after which the page begins
-- ARGV[3] how many chunks
-- Returns the last id of the page; "" if there are no more
local stream, chunk, counted, aggregations = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local state, room, dead = KEYS[5], KEYS[6], KEYS[7]
local name, after, limit = ARGV[1], ARGV[2], tonumber(ARGV[3])

if redis.call("HDEL", aggregations, name) == 1 then redis.call("XGROUP", "DESTROY", stream, name) end
local numbers, freed = {}, 0
for _, about in ipairs(redis.call("HVALS", aggregations)) do numbers[#numbers + 1] = string.match(about, "^%d+") end
local page = redis.call("XRANGE", stream, after == "" and "-" or "(" .. after, "+", "COUNT", limit)
for _, entry in ipairs(page) do
  local id = entry[1]
  local by, is_needed = redis.call("HGET", counted, id) or "", false
  for _, number in ipairs(numbers) do is_needed = is_needed or not string.find(by, " " .. number .. " ", 1, true) end
  redis.call("ZREM", dead, id .. " " .. name)
  if by ~= "" and #numbers > 0 and not is_needed then
    redis.call("HINCRBY", state, "bytes", 0 - redis.call("STRLEN", chunk .. id))
    redis.call("HINCRBY", state, "chunks", -1)
    redis.call("XDEL", stream, id)
    redis.call("UNLINK", chunk .. id)
    redis.call("HDEL", counted, id)
    freed = freed + 1
  end
end
if freed > 0 and redis.call("LLEN", room) == 0 then redis.call("RPUSH", room, "1") end
return #page == limit and page[#page][1] or ""
