-- Mute a member for so many milliseconds, or with -1 until it is lifted; 0 lifts it, also if the person has left.
-- *event* lacks its last part: until when.
-- KEYS    chat messages members calls muted
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
append_events(head, call, channel, { event .. packed(length > 0 and till or "") })
return answer(call, "done")
