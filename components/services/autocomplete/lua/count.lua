-- Add to the counts of searches in a book, by the minute, and to the searches that found nothing. A repeated call
-- returns the same.
-- KEYS    book usage missed calls
-- ARGV    searches spent slowest length keeps call misses...(typed count)
-- USES    time answer minute miss
-- RETURNS 1, or 0 if there is no such book
-- If *keeps* is not 1, what people typed is not to be stored, and what was stored is deleted.
local HOUR, MONTH = 3600000, 30 * 86400000 -- milliseconds
local MOST = 200 -- texts; a call has fewer
local before = answer_before()
if before then return tonumber(before) end
if redis.call("EXISTS", book) == 0 then return 0 end

local minute = math.floor(NOW / 60000)
local field = minute % 60
local known = read_minute(redis.call("HGET", usage, field) or "")
if tonumber(known.minute) == minute then
  searches, spent = searches + known.searches, spent + known.spent
  if tonumber(known.slowest) >= tonumber(slowest) then slowest, length = known.slowest, known.length end
end
redis.call("HSET", usage, field, write_minute({
  minute = text(minute), searches = text(searches), spent = text(spent), slowest = slowest, length = length,
}))
redis.call("PEXPIRE", usage, HOUR)

-- Delete the texts that nobody has searched for in a month, and while there are too many, those that weigh least: a
-- search weighs half as much after a day, a third after two. Those in *fresh* stay.
local function make_room(fresh)
  local others, stored = {}, stored_misses()
  local surplus = #stored / 2 - MOST
  for at = 1, #stored, 2 do
    local miss = read_miss(stored[at + 1])
    local age = NOW - (tonumber(miss.second) or 0) * 1000
    if age > MONTH then
      redis.call("HDEL", missed, stored[at])
      surplus = surplus - 1
    elseif not fresh[stored[at]] then
      others[#others + 1] = { typed = stored[at], weight = miss.count / (1 + age / (24 * HOUR)) }
    end
  end
  table.sort(others, function(a, b) return a.weight < b.weight end)
  for at = 1, math.min(surplus, #others) do redis.call("HDEL", missed, others[at].typed) end
end

if keeps ~= "1" then
  redis.call("UNLINK", missed)
elseif #misses > 0 then
  local second, fresh = text(math.floor(NOW / 1000)), {}
  for _, each in ipairs(misses) do
    local miss = read_miss(redis.call("HGET", missed, each.typed) or "")
    local count = each.count + (tonumber(miss.count) or 0)
    redis.call("HSET", missed, each.typed, write_miss({ count = text(count), second = second }))
    fresh[each.typed] = true
  end
  make_room(fresh)
  redis.call("PEXPIRE", missed, MONTH)
end
return answer(1)
