-- Claim rows of a bucket that are due. A repeated call, under the same token, returns the same.
-- KEYS    schedule delays claim call counts
-- ARGV    token limit lease
-- USES    time claim lease counts
-- RETURNS the microsecond of the claim; that at which the next row is due, "" if there is none; the members
local ANSWERED, PAGE = 60000, 20 -- milliseconds for which an answer is kept; members of a page

local function take(due)
  local names, ends, claimed, lost = {}, {}, {}, {}
  for at, member in ipairs(due) do names[at] = claim .. ":" .. member end
  local known, before = redis.call("HMGET", delays, unpack(due)), redis.call("MGET", unpack(names))
  for at, member in ipairs(due) do
    if known[at] then
      local mine = claim_for(before[at] and length_after(claim_in(before[at])) or tonumber(lease))
      redis.call("SET", names[at], mine.text, "PX", mine.kept)
      ends[#ends + 1], ends[#ends + 2] = mine.ends, member
      claimed[#claimed + 1] = member
    else -- a member without a delay is on the schedule by mistake
      lost[#lost + 1] = member
      count(member, "", -1)
    end
  end
  if #ends > 0 then redis.call("ZADD", schedule, unpack(ends)) end
  if #lost > 0 then redis.call("ZREM", schedule, unpack(lost)) end
  return claimed
end

-- If nothing is due, look at some page of the schedule. Rows that are due later than their delay allows were put
-- there by a clock that had jumped ahead, and are due now. A claim and a pause take LONGEST at most.
local function bring_back()
  local page = MICROSECONDS % math.ceil(redis.call("ZCARD", schedule) / PAGE) * PAGE
  local found, members = redis.call("ZRANGE", schedule, page, page + PAGE - 1, "WITHSCORES"), {}
  for at = 1, #found, 2 do members[#members + 1] = found[at] end
  for at, delay in ipairs(redis.call("HMGET", delays, unpack(members))) do
    local latest = MICROSECONDS + math.max(tonumber(delay or nil) or 0, lease, LONGEST)
    if tonumber(found[2 * at]) > latest then redis.call("ZADD", schedule, text(MICROSECONDS), members[at]) end
  end
end

if redis.call("LINDEX", call, 0) == token then return redis.call("LRANGE", call, 1, -1) end
-- First, because a server that is out of memory runs a script only if it begins by freeing memory.
redis.call("DEL", call)
local due = redis.call("ZRANGEBYSCORE", schedule, "-inf", text(MICROSECONDS), "LIMIT", 0, limit)
local claimed = #due > 0 and take(due) or {}
if #due == 0 and redis.call("EXISTS", schedule) == 1 then bring_back() end
local next_at = redis.call("ZRANGE", schedule, 0, 0, "WITHSCORES")[2]
local answer = { BEGUN, next_at and string.format("%.0f", next_at) or "" }
for _, member in ipairs(claimed) do answer[#answer + 1] = member end
if #claimed > 0 then
  redis.call("RPUSH", call, token, unpack(answer))
  redis.call("PEXPIRE", call, ANSWERED)
end
return answer
