-- Tell what became of a message. Only reads.
-- KEYS    mailbox messages handed dropped sent
-- ARGV    id asking
-- USES    figure days
-- RETURNS "waiting", "handed out", "acknowledged" or "dropped", or "" if that is not known, or not for *asking*, the
--         sender; and the millisecond of the last pull, "" if there was none
local number, field = tonumber(id), id .. "/from"
if number < figure("first") or number > figure("last") then return { "", "" } end
local entry = redis.call("XRANGE", messages, id, id)[1]
local sender = entry and entry[2][2] or redis.call("HGET", today, field) or redis.call("HGET", yesterday, field)
if asking ~= "" and asking ~= sender then return { "", "" } end

-- The last of those that were dropped are known by their ids. What became of an older one may be unknown.
local oldest = tonumber(redis.call("ZRANGE", dropped, 0, 0)[1] or "") or figure("last_dropped") + 1
local fate = "acknowledged"
if entry then
  fate = redis.call("ZCOUNT", handed, id, id) > 0 and "handed out" or "waiting"
elseif redis.call("ZSCORE", dropped, id) then
  fate = "dropped"
elseif number < oldest and figure("dropped") > redis.call("ZCARD", dropped) then
  fate = ""
end
return { fate, redis.call("HGET", mailbox, "pulled_at") or "" }
