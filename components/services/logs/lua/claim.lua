-- Claim chunks: those whose lease is over first, then new ones. Sent again under its number, it names the same.
-- KEYS[1] stream        STREAM of descriptors
-- KEYS[2] aggregations  HASH name -> number, milliseconds of the lease
-- KEYS[3] dead          ZSET id, blank, aggregation by the millisecond it was given up
-- KEYS[4] call          LIST the last call of this consumer and its answer
-- ARGV[1] name of the aggregation
-- ARGV[2] consumer
-- ARGV[3] number of this call
-- ARGV[4] how many
-- ARGV[5] how often a chunk is handed out before it is given up
-- Returns id of the newest chunk, milliseconds of the lease, 1 if there may be more whose lease is over; of each
--         chunk id, how often it was handed out, and the fields of its descriptor. Nothing without that aggregation
local stream, aggregations, dead, call = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local name, consumer, number, limit, tries = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local ANSWERED, FIELDS = 60000, 10 -- ms; names and values of a descriptor

if redis.call("LINDEX", call, 0) == number then return redis.call("LRANGE", call, 1, -1) end
local lease = string.match(redis.call("HGET", aggregations, name) or "", "%d+$")
if not lease then return {} end
redis.call("DEL", call) -- first: it is allowed where memory is full, and after one write all are; counting makes room
redis.call("XGROUP", "CREATECONSUMER", stream, name, consumer) -- who gets nothing is at work, too

local overdue = redis.call("XPENDING", stream, name, "IDLE", lease, "-", "+", limit)
local answer = { "0-0", lease, #overdue == limit and "1" or "0" }
local function add(entry, deliveries)
  answer[#answer + 1], answer[#answer + 2] = entry[1], deliveries
  for at = 2, FIELDS, 2 do answer[#answer + 1] = entry[2][at] or "" end
end

local time = redis.call("TIME")
for _, pending in ipairs(overdue) do
  local id, holder, deliveries = pending[1], pending[2], pending[4]
  if deliveries >= tries then
    redis.call("XACK", stream, name, id)
    redis.call("ZADD", dead, time[1] * 1000 + math.floor(time[2] / 1000), id .. " " .. name)
  else
    local entry = redis.call("XCLAIM", stream, name, consumer, 0, id)[1]
    if entry then add(entry, deliveries + 1) end
    limit = limit - 1
  end
  if holder ~= consumer and #redis.call("XPENDING", stream, name, "-", "+", 1, holder) == 0 then
    redis.call("XGROUP", "DELCONSUMER", stream, name, holder)
  end
end
if limit > 0 then
  local new = redis.call("XREADGROUP", "GROUP", name, consumer, "COUNT", limit, "STREAMS", stream, ">")
  for _, entry in ipairs(new and new[1][2] or {}) do add(entry, 1) end
end
local about = redis.call("XINFO", "STREAM", stream)
for at = 1, #about, 2 do
  if about[at] == "last-generated-id" then answer[1] = about[at + 1] end
end
redis.call("RPUSH", call, number, unpack(answer))
redis.call("PEXPIRE", call, ANSWERED)
return answer
