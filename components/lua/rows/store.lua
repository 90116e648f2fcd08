-- Store rows that were loaded, each if nobody has claimed or invalidated it since. Repeated, it says the same.
-- KEYS[1] schedule  ZSET member by the microsecond it is due
-- KEYS[2] delays    HASH member -> microseconds between two loads
-- KEYS[3] failures  HASH member -> count, microsecond, error
-- KEYS[4] row       STRING, prefix to a member: JSON
-- KEYS[5] claim     STRING, prefix to a member: microseconds of the claim and of its end, token
-- KEYS[6] counts    HASH name -> how many are on the schedule; name:failing -> how many of them fail
-- ARGV[1] token of the claim
-- ARGV[2] microsecond of the claim
-- ARGV[3] microseconds that a row of the schedule is good beyond its delay
-- ARGV[4] microseconds that a row is good which is not on the schedule; "" if none such is stored
-- ARGV[5..] member; 1 if its row is there, 0 if it is deleted; shape and values as JSON, in turn
-- Returns of each member 1 if it is stored, 0 if it was refused
local schedule, delays, failures, row, claim, counts = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local token, since, grace, good = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local MINUTE, DAY = 60000000, 86400000000 -- microseconds

local time = redis.call("TIME")
local now = time[1] * 1000000 + time[2]
local function text(number) return string.format("%.0f", number) end

local function count_one_less(member, suffix)
  local what = string.match(member, "^[^:]*") .. suffix
  if redis.call("HINCRBY", counts, what, -1) <= 0 then redis.call("HDEL", counts, what) end
end

local function store(member, is_there, body)
  local ends, owner = string.match(redis.call("GET", claim .. member) or "", "^%d+ (%d+) (.*)")
  if owner ~= token then -- sent again, or too late
    return string.match(redis.call("GETRANGE", row .. member, 0, 30), "^%[(%d+),") == since and 1 or 0
  end
  local delay = tonumber(redis.call("HGET", delays, member))
  if not (delay or good) then return 0 end
  local till = since + (delay and delay + grace or good)
  local kept = math.max(0, till - now) + math.min(DAY, math.max(MINUTE, till - since)) -- for who takes it stale
  local value = "[" .. since .. "," .. text(till) .. "," .. body .. "]"
  redis.call("SET", row .. member, value, "PX", text(math.ceil(kept / 1000)))
  local due = tonumber(redis.call("ZSCORE", schedule, member))
  if due and due < tonumber(ends) then -- refresh.lua: what was loaded may have been read before it
    redis.call("ZADD", schedule, text(now), member)
  elseif is_there == "1" then
    redis.call("ZADD", schedule, "XX", text(math.max(now, since + (delay or 0))), member)
  else
    if redis.call("ZREM", schedule, member) == 1 then count_one_less(member, "") end
    redis.call("HDEL", delays, member)
  end
  if redis.call("HDEL", failures, member) == 1 then count_one_less(member, ":failing") end
  redis.call("DEL", claim .. member)
  return 1
end

local answer = {}
for at = 5, #ARGV, 3 do answer[#answer + 1] = store(ARGV[at], ARGV[at + 1], ARGV[at + 2]) end
return answer
