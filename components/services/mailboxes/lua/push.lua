-- Put a message into a mailbox, unless that is full or takes none from its sender. Repeated, it says the same again.
-- KEYS[1] mailbox   HASH counters
-- KEYS[2] messages  STREAM <id>-0 -> message
-- KEYS[3] handed    ZSET "<id> <pull>" by id
-- KEYS[4] dropped   ZSET id by id
-- KEYS[5] sent      HASH, prefix to ":" and a day: digest -> what this returns; "<id>/from" -> sender of what went
-- KEYS[6] blocked   HASH sender whose mail is refused -> since when
-- KEYS[7] names     ZSET name by the day of its last use
-- ARGV[1] name of the mailbox
-- ARGV[2] sender
-- ARGV[3] digest of the sender and the client id
-- ARGV[4] name of this call, unlike others
-- ARGV[5] body
-- ARGV[6] limit
-- ARGV[7] drop_oldest or refuse
-- ARGV[8] channel
-- Returns "pushed" and, with blanks between: id, millisecond, the call that pushed it, the ids that were dropped for
--         it; "full" and the depth; "blocked" and ""
local mailbox, messages, handed, dropped = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local sent, blocked, names = KEYS[5], KEYS[6], KEYS[7]
local name, sender, digest, call = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local body, limit, policy, channel = ARGV[5], tonumber(ARGV[6]), ARGV[7], ARGV[8]
local YEAR, MONTH, TWO_DAYS = 366 * 86400000, 30 * 86400000, 2 * 86400000 -- milliseconds
local KNOWN, AT_ONCE = 1000, 1000 -- of those that were dropped; the most that one push drops
local PART = 10000 -- fields of what is known of a day, or two for each message of the limit; then a new part begins

local time = redis.call("TIME")
local day, now = math.floor(time[1] / 86400), string.format("%.0f", time[1] * 1000 + math.floor(time[2] / 1000))

local today, yesterday = sent .. ":" .. day, sent .. ":" .. day - 1
-- One that is damaged counts as none.
local function figure(field)
  local found = tonumber(redis.call("HGET", mailbox, field) or "") or 0
  return math.abs(found) < 2 ^ 53 and found or 0
end

local pushed = redis.call("HGET", today, digest) or redis.call("HGET", yesterday, digest)
if pushed then return { "pushed", pushed } end
if redis.call("HEXISTS", blocked, sender) == 1 then return { "blocked", "" } end
local depth, gone = redis.call("XLEN", messages), {}
if depth >= limit and policy ~= "drop_oldest" then return { "full", depth } end
if depth >= limit then
  local many = math.min(depth - limit + 1, AT_ONCE)
  for at, entry in ipairs(redis.call("XRANGE", messages, "-", "+", "COUNT", many)) do
    local id = string.match(entry[1], "%d+")
    gone[at] = id
    redis.call("XDEL", messages, entry[1])
    redis.call("ZREMRANGEBYSCORE", handed, id, id)
    redis.call("ZADD", dropped, id, id)
    redis.call("HSET", today, id .. "/from", entry[2][2])
  end
  redis.call("ZREMRANGEBYRANK", dropped, 0, -KNOWN - 1)
  redis.call("PEXPIRE", dropped, MONTH)
  redis.call("HSET", mailbox, "last_dropped", gone[#gone])
  redis.call("HSET", mailbox, "dropped", string.format("%.0f", figure("dropped") + #gone))
end

-- Counted on from the first one's microsecond: so ids have no gaps, and none is given anew if all was erased.
redis.call("HSETNX", mailbox, "first", string.format("%.0f", time[1] * 1000000 + time[2]))
local newest = redis.call("XREVRANGE", messages, "+", "-", "COUNT", 1)[1]
local last = math.max(figure("last"), figure("first") - 1, newest and tonumber(string.match(newest[1], "%d+")) or 0)
local id = string.format("%.0f", last + 1)
redis.call("XADD", messages, id .. "-0", "from", sender, "at", now, "body", body)
redis.call("HSET", mailbox, "last", id, "limit", limit, "pushed", string.format("%.0f", figure("pushed") + 1))
local record = table.concat({ id, now, call, unpack(gone) }, " ")
redis.call("HSET", today, digest, record)
redis.call("PEXPIRE", today, TWO_DAYS)
if redis.call("HLEN", today) >= math.max(PART, 2 * limit) then
  redis.call("UNLINK", yesterday)
  redis.call("RENAME", today, yesterday)
end
for _, key in ipairs({ mailbox, messages, handed }) do redis.call("PEXPIRE", key, YEAR) end
if redis.call("ZADD", names, "GT", "CH", day, name) == 1 then
  redis.call("ZREMRANGEBYSCORE", names, "-inf", day - 367)
  redis.call("EXPIRE", names, 368 * 86400)
end
redis.call("PUBLISH", channel, id)
return { "pushed", record }
