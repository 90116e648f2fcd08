-- Acknowledge messages that were handed out, then hand out more. A repeated call returns the same.
-- KEYS    mailbox messages handed sent names
-- ARGV    name upto limit which call
-- USES    time figure entries gone listed
-- RETURNS how many were acknowledged; how many were dropped without the recipient knowing; then for each
--         message, oldest first: id, 1 if another pull has handed it out before, sender, millisecond, body

local function acknowledge()
  local ended = redis.call("ZRANGEBYSCORE", handed, "(0", upto)
  for _, member in ipairs(ended) do
    local id = string.match(member, "%d+")
    local entry = redis.call("XRANGE", messages, id, id)[1]
    redis.call("XDEL", messages, id .. "-0")
    if entry then remember_sender(id, entry[2][2]) end
  end
  if #ended > 0 then
    redis.call("ZREMRANGEBYSCORE", handed, "-inf", upto)
    bound_memory(figure("limit"))
    redis.call("HSET", mailbox, "acknowledged", text(figure("acknowledged") + #ended))
    redis.call("HSET", mailbox, "last_acknowledged", #ended, "acknowledging", call)
  end
  -- The recipient is told how many were dropped until they acknowledge a message that was handed out with this
  -- number.
  if figure("told_with") > 0 and figure("told_with") <= tonumber(upto) then
    redis.call("HSET", mailbox, "known", text(figure("told")))
  end
end

local function hand_out(entry)
  local id = id_of(entry)
  local before = redis.call("ZRANGEBYSCORE", handed, id, id)[1]
  if not before then redis.call("ZADD", handed, id, id .. " " .. call) end
  redis.call("HSET", mailbox, "told", text(figure("dropped")), "told_with", id)
  return shown(entry, before and before ~= id .. " " .. call)
end

-- A server that is out of memory runs a script only if its first write needs no memory.
redis.call("PEXPIRE", messages, YEAR)
acknowledge()
local mine = redis.call("HGET", mailbox, "acknowledging") == call and figure("last_acknowledged") or 0
local answer = { mine, math.max(0, figure("dropped") - figure("known")) }
if tonumber(limit) > 0 then
  redis.call("HSET", mailbox, "pulled_at", text(NOW))
  list(name)
  for _, entry in ipairs(entries(which, "-", limit)) do answer[#answer + 1] = hand_out(entry) end
end
for _, key in ipairs({ mailbox, handed }) do redis.call("PEXPIRE", key, YEAR) end
return answer
