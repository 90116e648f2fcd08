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
local token, loaded_at, grace, good = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local MINUTE, DAY = 60000000, 86400000000 -- microseconds
local since = tonumber(loaded_at)

local time = redis.call("TIME")
local now = time[1] * 1000000 + time[2]
local function text(number) return string.format("%.0f", number) end

-- What stands before a row that is loaded so often, and how long it is kept, for who takes it stale. Most are alike.
local kinds = {}
local function kind_of(delay)
  local key = delay or 0
  if not kinds[key] then
    local till = since + (delay and delay + grace or good)
    local kept = math.max(0, till - now) + math.min(DAY, math.max(MINUTE, till - since))
    kinds[key] = { head = "[" .. loaded_at .. "," .. text(till) .. ",", kept = text(math.ceil(kept / 1000)) }
  end
  return kinds[key]
end

-- Each row has instants of its own, a delay apart: rows that were scheduled or late together do not stay together.
local function due_after(member, delay)
  local phase = math.floor(tonumber(string.sub(redis.sha1hex(member), 1, 6), 16) / 16777216 * delay)
  return math.max(now, since + delay - (since - phase) % delay)
end

local function count_one_less(member, suffix)
  local what = string.match(member, "^[^:]*") .. suffix
  if redis.call("HINCRBY", counts, what, -1) <= 0 then redis.call("HDEL", counts, what) end
end

local function was_stored(member)
  return string.match(redis.call("GETRANGE", row .. member, 0, 30), "^%[(%d+),") == loaded_at and 1 or 0
end

local members, names = {}, {}
for at = 5, #ARGV, 3 do
  members[#members + 1] = ARGV[at]
  names[#names + 1] = claim .. ARGV[at]
end
local claims, known = redis.call("MGET", unpack(names)), redis.call("HMGET", delays, unpack(members))
local scores = redis.call("ZMSCORE", schedule, unpack(members))

local answer, due, gone, stored = {}, {}, {}, {}
for at, member in ipairs(members) do
  local ends, owner = string.match(claims[at] or "", "^%d+ (%d+) (.*)")
  local delay = tonumber(known[at] or nil)
  if owner ~= token then -- sent again, or too late
    answer[at] = was_stored(member)
  elseif not (delay or good) then
    answer[at] = 0
  else
    local is_there, body, kind = ARGV[3 * at + 3], ARGV[3 * at + 4], kind_of(delay)
    redis.call("DEL", names[at]) -- first what frees: the others are done on a full server as well
    redis.call("SET", row .. member, kind.head .. body .. "]", "PX", kind.kept)
    -- One that is not there, and was scheduled while it was loaded, may be there again; one that is heeds its delay.
    local least = is_there == "0" and tonumber(ends) or ends - 1
    if scores[at] and tonumber(scores[at]) < least then -- wanted anew while it was loaded
      due[#due + 1], due[#due + 2] = text(now), member
    elseif is_there == "0" then
      gone[#gone + 1] = member
    elseif delay then
      due[#due + 1], due[#due + 2] = text(due_after(member, delay)), member
    end
    stored[#stored + 1] = member
    answer[at] = 1
  end
end
if #due > 0 then redis.call("ZADD", schedule, "XX", unpack(due)) end
for _, member in ipairs(gone) do
  if redis.call("ZREM", schedule, member) == 1 then count_one_less(member, "") end
  redis.call("HDEL", delays, member)
end
if redis.call("EXISTS", failures) == 1 then
  for _, member in ipairs(stored) do
    if redis.call("HDEL", failures, member) == 1 then count_one_less(member, ":failing") end
  end
end
return answer
