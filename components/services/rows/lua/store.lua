-- Store loaded rows, except those claimed or invalidated since. A repeated call returns the same.
-- KEYS    schedule delays failures row claim counts
-- ARGV    token loaded_at grace good loaded...
-- USES    time head claim counts
-- RETURNS for each row 1 if it is stored, 0 if it was refused
local SHORTEST, LONGEST = 60000000, 86400000000 -- microseconds for which a stale row is kept
grace = tonumber(grace) -- microseconds that a row on the schedule is good beyond its delay
good = tonumber(good) -- microseconds that another row is good; nil if none such is stored

-- Return the beginning of the text of a row with this delay, and how long the row is stored for readers that accept
-- stale rows. Most rows of a call have the same delay, so each result is made once.
local kinds = {}
local function kind_of(delay)
  local key = delay or 0
  if not kinds[key] then
    local till = loaded_at + (delay and delay + grace or good)
    local kept = math.max(0, till - MICROSECONDS) + math.min(LONGEST, math.max(SHORTEST, till - loaded_at))
    kinds[key] = { head = "[" .. loaded_at .. "," .. text(till) .. ",", kept = text(math.ceil(kept / 1000)) }
  end
  return kinds[key]
end

-- Each row is due at its own instants, a delay apart, so rows that were scheduled or late together do not stay
-- together.
local function due_after(member, delay)
  local phase = math.floor(tonumber(string.sub(redis.sha1hex(member), 1, 6), 16) / 16777216 * delay)
  return math.max(MICROSECONDS, loaded_at + delay - (loaded_at - phase) % delay)
end

local due, gone, scheduled = {}, {}, {}

-- Store a row. *score* is when the schedule has it due, false if it is not on the schedule.
local function store(member, is_there, body, delay, mine, score)
  local kind = kind_of(delay)
  -- First, because a server that is out of memory runs a script only if it begins by freeing memory.
  redis.call("DEL", claim .. ":" .. member)
  redis.call("SET", row .. ":" .. member, kind.head .. body .. "]", "PX", kind.kept)
  -- A deleted row that was scheduled during its load may have been created again, so it stays due; others keep their
  -- delay. refresh.lua and schedule.lua mark rows to be loaded again in this way.
  if score and tonumber(score) < mine.ends - (is_there and 1 or 0) then
    due[#due + 1], due[#due + 2] = text(MICROSECONDS), member
  elseif not is_there then
    gone[#gone + 1] = member
  elseif delay then
    due[#due + 1], due[#due + 2] = text(due_after(member, delay)), member
  end
  if delay then scheduled[#scheduled + 1] = member end
end

local members, names = {}, {}
for at = 1, #loaded, 3 do -- member; 1 if its row is there, 0 if it is deleted; shape and values as JSON
  members[#members + 1] = loaded[at]
  names[#names + 1] = claim .. ":" .. loaded[at]
end
local claims, known = redis.call("MGET", unpack(names)), redis.call("HMGET", delays, unpack(members))
local scores = redis.call("ZMSCORE", schedule, unpack(members))

local answer = {}
for at, member in ipairs(members) do
  local mine, delay = claim_in(claims[at] or ""), tonumber(known[at] or nil)
  if mine.owner ~= token then -- a repeated or late call
    answer[at] = head_of(member) == loaded_at and 1 or 0
  elseif delay or good then
    store(member, loaded[3 * at - 1] == "1", loaded[3 * at], delay, mine, scores[at])
    answer[at] = 1
  else
    answer[at] = 0
  end
end
if #due > 0 then redis.call("ZADD", schedule, "XX", unpack(due)) end
for _, member in ipairs(gone) do
  if redis.call("ZREM", schedule, member) == 1 then count(member, "", -1) end
  redis.call("HDEL", delays, member)
end
if #scheduled > 0 and redis.call("EXISTS", failures) == 1 then
  for _, member in ipairs(scheduled) do
    if redis.call("HDEL", failures, member) == 1 then count(member, ":failing", -1) end
  end
end
return answer
