-- Charge a person for a chat that they create, and for people whom they put into one; or say that it is too much.
-- KEYS[1] created  ZSET chat id by the millisecond at which the person created it
-- KEYS[2] rate     prefix to a kind: STRING, by when all is paid for; to "call/" and a call: STRING, that it was
-- ARGV[1] chat id; "" if none is created
-- ARGV[2] call
-- ARGV[3] how many people are put into a chat
-- ARGV[4] so many chats may be created in
-- ARGV[5] so many milliseconds; 0 chats for any number
-- ARGV[6] so many people may be put into chats in
-- ARGV[7] so many milliseconds; 0 people for any number
-- ARGV[8] so many chats may there be that the person created; 0 for any number
-- Returns "ok"; "fast" and the milliseconds until there is room; "full", and the millisecond of now
local created, rate = KEYS[1], KEYS[2]
local id, call, people = ARGV[1], ARGV[2], tonumber(ARGV[3])
local create, create_period, add, add_period = tonumber(ARGV[4]), ARGV[5], tonumber(ARGV[6]), ARGV[7]
local most, YEAR = tonumber(ARGV[8]), 366 * 86400000 -- milliseconds

local noted = rate .. "call/" .. call
if redis.call("EXISTS", noted) == 1 then return { "ok" } end
local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local is_new = id ~= "" and not redis.call("ZSCORE", created, id)
if is_new and most > 0 and redis.call("ZCARD", created) >= most then return { "full", now } end
local kinds = {
  { key = rate .. "create", cost = id ~= "" and 1 or 0, limit = create, period = tonumber(create_period) },
  { key = rate .. "add", cost = people, limit = add, period = tonumber(add_period) },
}
local wait = 0
for _, kind in ipairs(kinds) do
  kind.cost = math.min(kind.cost, kind.limit) -- what is more than all is let through when nothing else is
  local paid = math.max(now, math.min(tonumber(redis.call("GET", kind.key) or 0), now + kind.period))
  kind.paid = kind.cost > 0 and paid + kind.cost * kind.period / kind.limit or paid
  if kind.cost > 0 then wait = math.max(wait, math.ceil(kind.paid - kind.period - now)) end
end
if wait > 0 then return { "fast", wait } end
for _, kind in ipairs(kinds) do
  if kind.cost > 0 then
    redis.call("SET", kind.key, string.format("%.3f", kind.paid), "PX", math.max(1, math.ceil(kind.paid - now)))
  end
end
if id ~= "" and most > 0 then
  redis.call("ZADD", created, now, id)
  redis.call("PEXPIRE", created, YEAR)
end
redis.call("SET", noted, "1", "PX", 60000)
return { "ok" }
