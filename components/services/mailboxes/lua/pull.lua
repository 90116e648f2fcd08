-- Acknowledge messages that were handed out, then hand out more. A repeated call returns the same.
-- KEYS    mailbox messages handed sent names
-- ARGV    name upto limit which call
-- USES    time figure entries gone listed
-- RETURNS how many were acknowledged; how many were dropped without the recipient knowing; then for each
--         message, oldest first: id, 1 if another pull has handed it out before, sender, millisecond, body

-- Return the call that handed out a message, and the number of that pull; nothing if it is not handed out.
local function hand_out_of(id)
  local member = redis.call("ZRANGEBYSCORE", handed, id, id)[1]
  if member then return string.match(member, "^%d+ (%S+)"), counted(string.match(member, " (%d+)$")) end
end

-- Who names a message has seen what was handed out before it or together with it, and perhaps nothing that was
-- handed out later. So a call that is sent again does not acknowledge what the first one handed out.
local function acknowledge()
  local _, seen = hand_out_of(upto)
  if not seen then return end
  -- The recipient is told how many were dropped until they acknowledge a message that was handed out with this
  -- number.
  local _, told_in = hand_out_of(text(figure("told_with")))
  if told_in and told_in <= seen and figure("told_with") <= tonumber(upto) then
    redis.call("HSET", mailbox, "known", text(figure("told")))
  end
  local ended = {}
  for _, member in ipairs(redis.call("ZRANGEBYSCORE", handed, "(0", upto)) do
    if counted(string.match(member, " (%d+)$")) <= seen then ended[#ended + 1] = member end
  end
  for _, member in ipairs(ended) do
    local id = string.match(member, "%d+")
    local entry = redis.call("XRANGE", messages, id, id)[1]
    redis.call("XDEL", messages, id .. "-0")
    redis.call("ZREM", handed, member)
    if entry then remember_sender(id, entry[2][2]) end
  end
  bound_memory(figure("limit"))
  redis.call("HSET", mailbox, "acknowledged", text(figure("acknowledged") + #ended))
  redis.call("HSET", mailbox, "last_acknowledged", #ended, "acknowledging", call)
end

local function hand_out(entry, number)
  local id = id_of(entry)
  local by = hand_out_of(id)
  if not by then
    redis.call("ZADD", handed, id, id .. " " .. call .. " " .. number)
    redis.call("HSET", mailbox, "pulls", number)
  end
  redis.call("HSET", mailbox, "told", text(figure("dropped")), "told_with", id)
  return shown(entry, by and by ~= call)
end

-- A server that is out of memory runs a script only if its first write needs no memory.
redis.call("PEXPIRE", messages, YEAR)
acknowledge()
local mine = redis.call("HGET", mailbox, "acknowledging") == call and figure("last_acknowledged") or 0
local answer = { mine, math.max(0, figure("dropped") - figure("known")) }
if tonumber(limit) > 0 then
  redis.call("HSET", mailbox, "pulled_at", text(NOW))
  list(name)
  local number = text(figure("pulls") + 1)
  for _, entry in ipairs(entries(which, "-", limit)) do answer[#answer + 1] = hand_out(entry, number) end
end
for _, key in ipairs({ mailbox, handed }) do redis.call("PEXPIRE", key, YEAR) end
return answer
