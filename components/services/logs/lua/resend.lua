-- Hand out again chunks that an aggregation has given up. Repeated, it changes nothing.
-- KEYS[1] stream        STREAM of descriptors
-- KEYS[2] aggregations  HASH name -> number, milliseconds of the lease
-- KEYS[3] dead          ZSET id, blank, aggregation
-- ARGV[1] name of the aggregation
-- ARGV[2..] ids of chunks
-- Returns of each 1 if it waits for who claims it, 0 if it was not given up
local stream, aggregations, dead = KEYS[1], KEYS[2], KEYS[3]
local name = ARGV[1]

local lease = string.match(redis.call("HGET", aggregations, name) or "", "%d+$")
local answer = {}
for at = 2, #ARGV do
  local id = ARGV[at]
  local was_dead = lease and redis.call("ZREM", dead, id .. " " .. name) == 1
  if was_dead then
    redis.call("XCLAIM", stream, name, "-", 0, id, "IDLE", lease, "RETRYCOUNT", 0, "FORCE", "JUSTID")
  end
  local waits = was_dead or lease and #redis.call("XPENDING", stream, name, id, id, 1, "-") > 0
  answer[#answer + 1] = waits and 1 or 0
end
return answer
