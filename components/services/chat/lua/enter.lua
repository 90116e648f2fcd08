-- Add people to a chat, or check whether they may be added. Nothing changes for members. *persons* has the name of
-- each person, followed by the body of their event. *known* is when somebody was last removed, as returned by the
-- check before the hints were written; "" for the check. *inboxes* is the prefix of the channels of inboxes.
-- KEYS    chat messages members reads blocked calls muted
-- ARGV    by call is_done known channel inboxes persons...
-- USES    head member answered halves event
-- RETURNS "added", when somebody was last removed, and the new members; "again", if that was after *known*;
--         "unknown"; "closed"; "denied"; "blocked" and who; "full" and the limit
local head = head_of(
  chat, "seq", "n", "at", "bytes", "joined", "closed", "gone", "out", "history", "max_members", "is_open"
)
if not is_there(head) then return { "unknown" } end
local actor, is_joining = by ~= "" and member_of(by), by ~= "" and #persons == 2 and persons[1] == by
local out = head.out or "0"

-- Return the last seq that newcomers may not see. Ordinals grow with the sequence.
local function hidden()
  if head.history == "all" then return 0 end
  if head.history == "0" then return head.seq end
  local last = head.n - head.history
  return last_fitting(messages, 0, head.seq + 1, function(fields) return tonumber(fields[ORDINAL]) <= last end)
end

-- Remove and return the end of the mute of a person who left while muted.
local function take_mute(person)
  local till = redis.call("ZSCORE", muted, person) or "0"
  redis.call("ZREM", muted, person)
  return till == "inf" and "-1" or till
end

local function let_in(new)
  local now, bodies, first_hidden = moment(head), {}, hidden()
  for at, place in ipairs(new) do bodies[at] = persons[place + 1] end
  local last = append_events(head, call, channel, bodies)
  for at, place in ipairs(new) do
    local person = persons[place]
    redis.call("HSET", members, person, write_member({
      role = "u", number = head.joined + at, joined_at = text(now), hidden = first_hidden, read_n = head.n,
      muted_until = take_mute(person), call = call, has_written = 0,
    }))
    redis.call("ZADD", reads, last - #new + at, person)
    redis.call("PUBLISH", inboxes .. person, "joined")
  end
  redis.call("HSET", chat, "joined", head.joined + #new)
  answer(call, "1")
end

local new, again, added = {}, { "added", out }, { "added", out }
for place = 1, #persons, 2 do
  local there = member_of(persons[place])
  if not there then
    table.insert(new, place)
    table.insert(added, persons[place])
  elseif there.call == call then
    table.insert(again, persons[place])
  end
end
if answered(call) then return again end
-- People who were removed since then may have been erased, together with their hints.
if is_done == "1" and known ~= "" and known ~= out then return { "again" } end
if by ~= "" and not actor and not (is_joining and head.is_open == "1") then return { "unknown" } end
if actor and #new > 0 and head.is_open == "0" and actor.role == "u" then return { "denied" } end
for _, place in ipairs(new) do
  if redis.call("HEXISTS", blocked, persons[place]) == 1 then return { "blocked", persons[place] } end
end
if is_joining and head.closed == "1" and not actor then return { "closed" } end
local most = tonumber(head.max_members)
if #new > 0 and redis.call("HLEN", members) + #new > most then return { "full", most } end
if is_done == "1" and #new > 0 then let_in(new) end
return added
