-- Give a member another role, by its letter.
-- KEYS    chat messages members calls
-- ARGV    person letter by call event channel
-- USES    head member answered event
-- RETURNS "done"; "nothing"; "unknown"; "denied"; "absent"; "last", of the only owner
local said = answered(call)
if said then return said end
local head = head_of(chat, "seq", "n", "at", "bytes", "owners", "gone")
local member, rank = member_of(person), rank_of(by)
if not is_there(head) or not rank then return "unknown" end
if rank < RANK.o then return "denied" end
if not member then return "absent" end
local before = member.role
if before == letter then return "nothing" end
if before == "o" and head.owners == "1" then return "last" end

member.role = letter
redis.call("HSET", members, person, write_member(member))
redis.call("HINCRBY", chat, "owners", (letter == "o" and 1 or 0) - (before == "o" and 1 or 0))
append_events(head, call, channel, { event })
return answer(call, "done")
