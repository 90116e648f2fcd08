-- Tell what became of a message. Reads only.
-- KEYS[1] mailbox   HASH counters
-- KEYS[2] messages  STREAM <id>-0 -> message
-- KEYS[3] handed    ZSET "<id> <pull>" by id
-- KEYS[4] dropped   ZSET id by id
-- KEYS[5] sent      HASH, prefix to ":" and a day: "<id>/from" -> sender of what went
-- ARGV[1] id
-- ARGV[2] sender who asks; "" for anybody
-- Returns "waiting", "handed out", "acknowledged" or "dropped", or "" if that is not known or not for this sender;
--         and the millisecond of the last pull, "" if there was none
local mailbox, messages, handed, dropped, sent = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local id, asking = ARGV[1], ARGV[2]

local time = redis.call("TIME")
local day = math.floor(time[1] / 86400)
-- One that is damaged counts as none.
local function figure(field)
  local found = tonumber(redis.call("HGET", mailbox, field) or "") or 0
  return math.abs(found) < 2 ^ 53 and found or 0
end

local number, field = tonumber(id), id .. "/from"
if number < figure("first") or number > figure("last") then return { "", "" } end
local entry = redis.call("XRANGE", messages, id, id)[1]
local sender = entry and entry[2][2]
  or redis.call("HGET", sent .. ":" .. day, field) or redis.call("HGET", sent .. ":" .. day - 1, field)
if asking ~= "" and asking ~= sender then return { "", "" } end

-- Known are the last of those that were dropped: of what is between the others, nobody knows which it was.
local known = tonumber(redis.call("ZRANGE", dropped, 0, 0)[1] or "") or figure("last_dropped") + 1
local fate = "acknowledged"
if entry then
  fate = redis.call("ZCOUNT", handed, id, id) > 0 and "handed out" or "waiting"
elseif redis.call("ZSCORE", dropped, id) then
  fate = "dropped"
elseif number < known and figure("dropped") > redis.call("ZCARD", dropped) then
  fate = ""
end
return { fate, redis.call("HGET", mailbox, "pulled_at") or "" }
