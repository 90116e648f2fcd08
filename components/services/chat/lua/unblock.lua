-- Unblock a person, who may then join or be added again.
-- KEYS    chat messages members blocked calls
-- ARGV    person by call event channel
-- USES    head member answered event
-- RETURNS "done"; "nothing"; "unknown"; "denied"
local said = answered(call)
if said then return said end
local head, rank = head_of(chat, "seq", "n", "at", "bytes", "gone"), rank_of(by)
if not is_there(head) or not rank then return "unknown" end
if rank < RANK.m then return "denied" end
if redis.call("HDEL", blocked, person) == 0 then return "nothing" end
append_events(head, call, channel, { event })
return answer(call, "done")
