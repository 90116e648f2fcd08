-- Claim chunks: first those whose lease has ended, then new ones. A call repeated with its number returns the same.
-- KEYS    stream aggregations dead call worker
-- ARGV    name consumer number limit tries
-- USES    time aggregation fields
-- RETURNS id of the newest chunk, milliseconds of the lease, 1 if there may be more whose lease is over; for each
--         chunk its id, how often it was handed out, and the fields of its descriptor. Nothing if the aggregation
--         takes no part
local ANSWERED, FIELDS = 60000, 10 -- milliseconds; names and values of a descriptor
local LOOKED_AT = 100 -- entries and chunks that are handed out
local known = call .. consumer
limit = tonumber(limit)

if redis.call("LINDEX", known, 0) == number then return redis.call("LRANGE", known, 1, -1) end
local about = taking_part()
if not about then return {} end
-- A server that is out of memory runs a script only if its first write needs no memory. Claimed chunks soon make
-- room.
redis.call("DEL", known)
redis.call("XGROUP", "CREATECONSUMER", stream, name, consumer) -- a consumer that gets nothing counts as running, too

local overdue = redis.call("XPENDING", stream, name, "IDLE", about.lease, "-", "+", limit)
local answer = { "0-0", about.lease, #overdue == limit and "1" or "0" }
local function add(entry, deliveries)
  answer[#answer + 1], answer[#answer + 2] = entry[1], deliveries
  for at = 2, FIELDS, 2 do answer[#answer + 1] = entry[2][at] or "" end
end

local function give_up(id)
  redis.call("XACK", stream, name, id)
  redis.call("ZADD", dead, NOW, id .. " " .. name)
end

-- A chunk that was handed out later than now, by a clock that had jumped ahead, counts as handed out now, and the
-- last report of a consumer that was seen later than now is dropped. Redis tells these instants only here, so a
-- consumer looks that finds nothing else to do.
local function bring_back()
  local all = fields_of(redis.call("XINFO", "STREAM", stream, "FULL", "COUNT", LOOKED_AT)).groups
  for _, group in ipairs(all) do
    local facts = fields_of(group)
    local is_ours = facts.name == name
    for _, pending in ipairs(is_ours and facts.pending or {}) do
      local id, holder, handed_out = unpack(pending)
      if handed_out > NOW then redis.call("XCLAIM", stream, name, holder, 0, id, "JUSTID") end
    end
    for _, each in ipairs(is_ours and facts.consumers or {}) do
      local seen = fields_of(each)
      if seen["seen-time"] > NOW then redis.call("DEL", worker .. seen.name) end
    end
  end
end

for _, pending in ipairs(overdue) do
  local id, holder, deliveries = pending[1], pending[2], pending[4]
  if deliveries >= tonumber(tries) then
    give_up(id)
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
  if #overdue == 0 and not new then bring_back() end
end
answer[1] = fields_of(redis.call("XINFO", "STREAM", stream))["last-generated-id"]
redis.call("RPUSH", known, number, unpack(answer))
redis.call("PEXPIRE", known, ANSWERED)
return answer
