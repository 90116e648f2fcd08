-- Return the fate of a message. Only reads.
-- KEYS    mailbox messages handed dropped sent
-- ARGV    id asking
-- USES    figure days
-- RETURNS "waiting", "handed out", "acknowledged" or "dropped", or "" if that is not known, or not for *asking*, the
--         sender; and the millisecond of the last pull, "" if there was none
local number, field = tonumber(id), id .. "/from"
if number < figure("first") or number > figure("last") then return { "", "" } end
local entry = redis.call("XRANGE", messages, id, id)[1]
local sender = entry and entry[2][2] or recorded(field)
if asking ~= "" and asking ~= sender then return { "", "" } end

-- The ids of the last dropped messages are stored. The fate of older ones may be unknown.
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
