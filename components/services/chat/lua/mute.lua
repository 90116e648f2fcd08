-- Mute a member for a number of milliseconds, and show them as here or typing no more. -1 mutes without end; 0 lifts
-- the mute, even of a person who has left.
-- *event* lacks its last part, the end of the mute.
-- KEYS    chat messages members calls muted here typing
-- ARGV    person milliseconds by call event channel
-- USES    head member answered packed event
-- RETURNS "done"; "nothing"; "unknown"; "denied"; "absent"
local said = answered(call)
if said then return said end
local head = head_of(chat, "seq", "n", "at", "bytes", "gone")
local member, rank = member_of(person), rank_of(by)
if not is_there(head) or not rank then return "unknown" end
if rank <= (member and RANK[member.role] or 1) then return "denied" end
local length = tonumber(milliseconds)
if not member and not (length == 0 and redis.call("ZREM", muted, person) == 1) then return "absent" end
if member and length == 0 and member.muted_until == "0" then return "nothing" end

local till = text(length > 0 and moment(head) + length or length)
if member then
  member.muted_until = till
  redis.call("HSET", members, person, write_member(member))
end
if length ~= 0 then
  redis.call("ZREM", here, person)
  redis.call("ZREM", typing, person)
end
append_events(head, call, channel, { event .. packed(length > 0 and till or "") })
return answer(call, "done")
