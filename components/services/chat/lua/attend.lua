-- Say who has a chat open, and who is typing there, to a member who is not muted. *mode* is "note" if the member has
-- it open as well, "look" if they only want to know, and "hide" if they are not to be shown to others. The member is
-- noted at most once in a third of the lease; all other calls write nothing.
-- KEYS    members here typing
-- ARGV    person mode most
-- USES    time member present
-- RETURNS how many others have it open, at most *most* of them, the latest first, those who are typing, and the
--         milliseconds until the first of these ends, 0 if there is none; nothing for a stranger

-- The most people whose last sign of life is remembered, and for how many milliseconds.
local MOST, KEPT = 10000, 30 * 86400000

local member = member_of(person)
if not member then return {} end
local noted = tonumber(redis.call("ZSCORE", here, person) or "0")
local muted_until = tonumber(member.muted_until)
if muted_until == -1 or muted_until > NOW then mode = "hide" end
if mode == "note" and (noted <= NOW - LEASE / 3 or noted > NOW) then
  -- Free memory first, so that a server that is out of memory runs the whole script.
  redis.call("ZREMRANGEBYSCORE", here, "-inf", NOW - KEPT)
  redis.call("ZREMRANGEBYRANK", here, 0, -MOST - 1)
  redis.call("ZADD", here, NOW, person)
  redis.call("PEXPIRE", here, KEPT)
  noted = NOW
elseif mode == "hide" then
  redis.call("ZREM", here, person)
  redis.call("ZREM", typing, person)
  noted = 0
end
if muted_until == -1 or muted_until > NOW then return { 0, {}, {}, 0 } end

local since, others, typists, ends_in = "(" .. NOW - LEASE, {}, {}, 0
local count = redis.call("ZCOUNT", here, since, NOW)
if noted > NOW - LEASE and noted <= NOW then count = count - 1 end
for _, who in ipairs(redis.call("ZREVRANGEBYSCORE", here, NOW, since, "LIMIT", 0, most + 1)) do
  if who ~= person and #others < tonumber(most) then table.insert(others, who) end
end
local found = redis.call("ZRANGEBYSCORE", typing, "(" .. NOW, NOW + TYPED, "WITHSCORES")
for at = 1, #found, 2 do
  if found[at] ~= person then
    if ends_in == 0 then ends_in = found[at + 1] - NOW end
    table.insert(typists, found[at])
  end
end
return { count, others, typists, ends_in }
