-- Acknowledge what was handed out, then hand out more. Repeated, it says the same again.
-- KEYS[1] mailbox   HASH counters
-- KEYS[2] messages  STREAM <id>-0 -> message
-- KEYS[3] handed    ZSET "<id> <pull>" by id
-- KEYS[4] sent      HASH, prefix to ":" and a day: "<id>/from" -> sender of what went
-- KEYS[5] names     ZSET name by the day of its last use
-- ARGV[1] name of the mailbox
-- ARGV[2] id up to which is acknowledged; 0 for none
-- ARGV[3] how many to hand out; 0 if it is no pull
-- ARGV[4] newest or oldest
-- ARGV[5] name of this call, unlike others
-- Returns how many were acknowledged; how many were dropped that the recipient has not been told of; then for each
--         message, oldest first: id, 1 if it was handed out before, sender, millisecond, body
local mailbox, messages, handed, sent, names = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local name, upto, limit, which, call = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]
local YEAR, TWO_DAYS = 366 * 86400000, 2 * 86400000 -- milliseconds
local PART = 10000 -- fields of what is known of a day, or two for each message of the limit; then a new part begins

local time = redis.call("TIME")
local day, now = math.floor(time[1] / 86400), string.format("%.0f", time[1] * 1000 + math.floor(time[2] / 1000))
-- One that is damaged counts as none.
local function figure(field)
  local found = tonumber(redis.call("HGET", mailbox, field) or "") or 0
  return math.abs(found) < 2 ^ 53 and found or 0
end

-- A script that begins with what needs no memory is taken by a server that is full.
redis.call("PEXPIRE", messages, YEAR)
local gone, today = redis.call("ZRANGEBYSCORE", handed, "(0", upto), sent .. ":" .. day
for _, member in ipairs(gone) do
  local id = string.match(member, "%d+")
  local entry = redis.call("XRANGE", messages, id, id)[1]
  redis.call("XDEL", messages, id .. "-0")
  if entry then redis.call("HSET", today, id .. "/from", entry[2][2]) end
end
if #gone > 0 then
  redis.call("ZREMRANGEBYSCORE", handed, "-inf", upto)
  redis.call("PEXPIRE", today, TWO_DAYS)
  if redis.call("HLEN", today) >= math.max(PART, 2 * figure("limit")) then
    redis.call("UNLINK", sent .. ":" .. day - 1)
    redis.call("RENAME", today, sent .. ":" .. day - 1)
  end
  redis.call("HSET", mailbox, "acknowledged", string.format("%.0f", figure("acknowledged") + #gone))
  redis.call("HSET", mailbox, "last_acknowledged", #gone .. " " .. call)
end
-- What was dropped is told until something is acknowledged that was handed out together with the telling.
if figure("told_with") > 0 and figure("told_with") <= tonumber(upto) then
  redis.call("HSET", mailbox, "known", string.format("%.0f", figure("told")))
end

local found, is_newest = {}, which == "newest"
if limit > 0 then
  found = is_newest and redis.call("XREVRANGE", messages, "+", "-", "COUNT", limit)
    or redis.call("XRANGE", messages, "-", "+", "COUNT", limit)
  redis.call("HSET", mailbox, "pulled_at", now)
  if redis.call("ZADD", names, "GT", "CH", day, name) == 1 then
    redis.call("ZREMRANGEBYSCORE", names, "-inf", day - 367)
    redis.call("EXPIRE", names, 368 * 86400)
  end
end
local mine = string.match(redis.call("HGET", mailbox, "last_acknowledged") or "", "^(%d+) " .. call .. "$")
local answer = { tonumber(mine or 0), math.max(0, figure("dropped") - figure("known")) }
for at = 1, #found do
  local entry = found[is_newest and #found + 1 - at or at]
  local id = string.match(entry[1], "%d+")
  local before = redis.call("ZRANGEBYSCORE", handed, id, id)[1]
  if not before then redis.call("ZADD", handed, id, id .. " " .. call) end
  local is_again = before and before ~= id .. " " .. call
  answer[#answer + 1] = { id, is_again and 1 or 0, entry[2][2], entry[2][4] or "", entry[2][6] or "" }
  redis.call("HSET", mailbox, "told", string.format("%.0f", figure("dropped")), "told_with", id)
end
for _, key in ipairs({ mailbox, handed }) do redis.call("PEXPIRE", key, YEAR) end
return answer
