-- Claim rows of one bucket that a reader missed, if nobody has loaded or loads them. Repeated, it says the same.
-- KEYS[1] schedule  ZSET member by the microsecond it is due
-- KEYS[2] row       STRING, prefix to a member: JSON
-- KEYS[3] claim     STRING, prefix to a member: microseconds of the claim and of its end, token
-- ARGV[1] token, unlike that of any other call
-- ARGV[2] microseconds of the lease
-- ARGV[3] shape that a row must have
-- ARGV[4] microseconds that have passed since its claim at most; "" if any age will do
-- ARGV[5..] members
-- Returns microsecond of the claim; of each member "load", "wait" or "there"
local schedule, row, claim = KEYS[1], KEYS[2], KEYS[3]
local token, lease, shape, oldest = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])
local KEPT, LONGEST = 60000, 300000000 -- as in claim.lua

local time = redis.call("TIME")
local now = time[1] * 1000000 + time[2]
local function text(number) return string.format("%.0f", number) end

local function is_there(member)
  local head = redis.call("GETRANGE", row .. member, 0, 99)
  local at, till, its_shape = string.match(head, '^%[(%d+),(%d+),"([^"]*)"')
  return at and its_shape == shape and tonumber(till) > now and (not oldest or now - at <= oldest)
end

local answer = { text(now) }
for at = 5, #ARGV do
  local member, what = ARGV[at], "load"
  local since, ends, owner = string.match(redis.call("GET", claim .. member) or "", "^(%d+) (%d+) (.*)")
  if owner == token then
    answer[1] = since -- sent again
  elseif is_there(member) then
    what = "there"
  elseif owner and tonumber(ends) > now then
    what = "wait"
  else
    local mine = since and math.max(lease, math.min(LONGEST, 2 * (ends - since))) or lease -- as in claim.lua
    -- A full server refuses a script that begins with a write that needs memory, and lets the rest of one pass that
    -- begins with this, which changes nothing. Rows on the schedule were there before; others are not added to it.
    if redis.call("ZSCORE", schedule, member) then redis.call("ZREM", schedule, "") end
    local value = text(now) .. " " .. text(now + mine) .. " " .. token
    redis.call("SET", claim .. member, value, "PX", text(math.ceil(2 * mine / 1000) + KEPT))
    redis.call("ZADD", schedule, "XX", "GT", text(now + mine), member)
  end
  answer[#answer + 1] = what
end
return answer
