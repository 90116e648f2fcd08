-- Remove a person from a chat. The chat is deleted with its last member. A mute stays. *kind* is "left", if they
-- wanted to; "kicked"; "blocked", if they may not come back; or "erased", which makes a process that is about to add
-- them write the hint in their inbox again.
-- KEYS    chat messages members reads mentions own blocked calls sent deleted names muted altered changes here typing
-- ARGV    id person by call event kind channel inbox
-- USES    time head member answered packed event over
-- RETURNS "removed"; "traceless", for a member who has sent nothing and reacted to nothing; "blocked", for a person
--         who was no member; "nothing"; "unknown"; "denied"; "absent"; "crowded", if the limit of blocked people is
--         reached

-- The most remembered people who left while muted, and the most blocked people.
local MOST_MUTED, MOST_BLOCKED = 10000, 10000

local said = answered(call)
if said then return said end
local head = head_of(chat, "seq", "n", "at", "bytes", "owners", "level", "gone")
local member, rank = member_of(person), rank_of(by)
if not is_there(head) or not rank then return "unknown" end
if kind ~= "left" and rank <= (member and RANK[member.role] or 1) then return "denied" end
local now, out = moment(head), text(MICROSECONDS)

-- Remember the mute of a person who leaves.
local function keep_mute()
  redis.call("ZREMRANGEBYSCORE", muted, "-inf", now)
  local till = member and tonumber(member.muted_until) or 0
  if till == -1 or till > now then
    redis.call("ZADD", muted, till == -1 and "+inf" or till, person)
    redis.call("ZREMRANGEBYRANK", muted, 0, -MOST_MUTED - 1)
  end
end

-- Make the first moderator the owner, or else the first member. Return that person.
local function hand_over()
  local heir, best, place = "", nil, { 0 }
  for _, each in ipairs(redis.call("ZRANGE", reads, 0, -1)) do
    local theirs = member_of(each)
    local rank_of_theirs, number = RANK[theirs.role], tonumber(theirs.number)
    if rank_of_theirs > place[1] or (rank_of_theirs == place[1] and number < place[2]) then
      heir, best, place = each, theirs, { rank_of_theirs, number }
    end
  end
  best.role = "o"
  redis.call("HSET", members, heir, write_member(best))
  return heir
end

if not member and kind == "erased" then
  -- This changes nothing, but a server that is out of memory runs a script whose first write needs no memory.
  redis.call("HDEL", members, person)
  redis.call("HSET", chat, "out", out)
end
if not member and kind ~= "blocked" then return "absent" end
local is_new = kind == "blocked" and redis.call("HEXISTS", blocked, person) == 0
if is_new and redis.call("HLEN", blocked) >= MOST_BLOCKED then return "crowded" end
if not member and not is_new then return "nothing" end

-- Free memory first, so that a server that is out of memory runs the whole script.
redis.call("HDEL", members, person)
if is_new then redis.call("HSET", blocked, person, now) end
for _, key in ipairs({ reads, here, typing }) do redis.call("ZREM", key, person) end
redis.call("DEL", mentions .. "/" .. person, own .. "/" .. person)
local is_last = redis.call("HLEN", members) == 0
if is_last then
  end_chat(id, head, now)
  redis.call("PUBLISH", channel, head.seq)
else
  local events, owners = { event }, head.owners - (member and member.role == "o" and 1 or 0)
  keep_mute()
  if owners == 0 then
    owners, events[2] = 1, "e" .. packed("role") .. packed("") .. packed(hand_over()) .. packed("owner")
  end
  redis.call("HSET", chat, "owners", owners, "out", out)
  append_events(head, call, channel, events)
end
redis.call("PUBLISH", inbox, "left")
if not member then return answer(call, "blocked") end
return answer(call, (is_last or member.has_written == "0") and "traceless" or "removed")
