-- Claim rows of one bucket that are due. Sent again under its number, it names the same ones.
-- KEYS[1] schedule  ZSET member by the microsecond it is due
-- KEYS[2] delays    HASH member -> microseconds between two loads
-- KEYS[3] claim     STRING, prefix to a member: microseconds of the claim and of its end, token
-- KEYS[4] call      LIST what the last call of this daemon answered
-- KEYS[5] counts    HASH name -> how many are on the schedule
-- ARGV[1] token, unlike that of any other call
-- ARGV[2] how many
-- ARGV[3] microseconds of the lease
-- Returns microsecond of the claim; microsecond at which the next row is due, "" if there is none; members
local schedule, delays, claim, call, counts = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local token, limit, lease = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local ANSWERED, KEPT, LONGEST = 60000, 60000, 300000000 -- ms, ms; microseconds of a lease that grows

if redis.call("LINDEX", call, 0) == token then return redis.call("LRANGE", call, 1, -1) end
redis.call("DEL", call) -- a first write that frees: the others are done on a full server as well
local time = redis.call("TIME")
local now = time[1] * 1000000 + time[2]
local function text(number) return string.format("%.0f", number) end

-- What a claim of so many microseconds says, how long it is kept, when it ends. Most are alike.
local kinds = {}
local function kind_of(mine)
  if not kinds[mine] then
    local value = text(now) .. " " .. text(now + mine) .. " " .. token
    kinds[mine] = { value = value, kept = text(math.ceil(2 * mine / 1000) + KEPT), ends = text(now + mine) }
  end
  return kinds[mine]
end

-- Who lost his lease before he was done shall not lose it so again and again: the next has twice the time.
local function lease_after(before)
  local since, ends = string.match(before or "", "^(%d+) (%d+)")
  return since and math.max(lease, math.min(LONGEST, 2 * (ends - since))) or lease
end

local claimed, lost = {}, {}
local due = redis.call("ZRANGEBYSCORE", schedule, "-inf", text(now), "LIMIT", 0, limit)
if #due > 0 then
  local names, ends = {}, {}
  for at, member in ipairs(due) do names[at] = claim .. member end
  local known, before = redis.call("HMGET", delays, unpack(due)), redis.call("MGET", unpack(names))
  for at, member in ipairs(due) do
    if known[at] then
      local kind = kind_of(before[at] and lease_after(before[at]) or lease)
      redis.call("SET", names[at], kind.value, "PX", kind.kept)
      ends[#ends + 1], ends[#ends + 2] = kind.ends, member
      claimed[#claimed + 1] = member
    else -- nobody knows how often, so it is on the schedule by mistake
      lost[#lost + 1] = member
      local name = string.match(member, "^[^:]*")
      if redis.call("HINCRBY", counts, name, -1) <= 0 then redis.call("HDEL", counts, name) end
    end
  end
  if #ends > 0 then redis.call("ZADD", schedule, unpack(ends)) end
  if #lost > 0 then redis.call("ZREM", schedule, unpack(lost)) end
end
local next_at = redis.call("ZRANGE", schedule, 0, 0, "WITHSCORES")[2]
local answer = { text(now), next_at and text(next_at) or "" }
for _, member in ipairs(claimed) do answer[#answer + 1] = member end
if #claimed > 0 then
  redis.call("RPUSH", call, token, unpack(answer))
  redis.call("PEXPIRE", call, ANSWERED)
end
return answer
