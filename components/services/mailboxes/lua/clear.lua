-- Drop all messages of a mailbox. Repeated, it says the same again.
-- KEYS[1] mailbox   HASH counters
-- KEYS[2] messages  STREAM <id>-0 -> message
-- KEYS[3] handed    ZSET "<id> <pull>" by id
-- KEYS[4] dropped   ZSET id by id
-- KEYS[5] sent      HASH, prefix to ":" and a day: "<id>/from" -> sender of what went
-- ARGV[1] name of this call, unlike others
-- Returns how many there were
local mailbox, messages, handed, dropped, sent = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local call = ARGV[1]
local MONTH, TWO_DAYS = 30 * 86400000, 2 * 86400000 -- milliseconds
local KNOWN = 1000 -- of those that were dropped

local time = redis.call("TIME")
local today = sent .. ":" .. math.floor(time[1] / 86400)

local count = redis.call("XLEN", messages)
if count > 0 then
  local newest = redis.call("XREVRANGE", messages, "+", "-", "COUNT", KNOWN)
  -- What frees memory comes first: so a server that is full takes all of it.
  redis.call("DEL", messages, handed)
  for _, entry in ipairs(newest) do
    local id = string.match(entry[1], "%d+")
    redis.call("ZADD", dropped, id, id)
    redis.call("HSET", today, id .. "/from", entry[2][2])
  end
  redis.call("ZREMRANGEBYRANK", dropped, 0, -KNOWN - 1)
  redis.call("PEXPIRE", dropped, MONTH)
  redis.call("PEXPIRE", today, TWO_DAYS)
  redis.call("HSET", mailbox, "last_dropped", redis.call("ZRANGE", dropped, -1, -1)[1])
  redis.call("HSET", mailbox, "last_clearing", count .. " " .. call)
  local before = tonumber(redis.call("HGET", mailbox, "dropped") or "") or 0
  redis.call("HSET", mailbox, "dropped", string.format("%.0f", before + count))
end
return tonumber(string.match(redis.call("HGET", mailbox, "last_clearing") or "", "^(%d+) " .. call .. "$") or 0)
