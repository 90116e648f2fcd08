-- Delete a message. An event informs clients that have it.
-- KEYS    chat messages members mentions own deleted altered changes calls
-- ARGV    seq by call event channel
-- USES    head member answered bury event
-- RETURNS "done"; "unknown"; "denied"; "nowhere"
local said = answered(call)
if said then return said end
local head, actor = head_of(chat, "seq", "n", "at", "bytes", "gone", "max_age"), by ~= "" and member_of(by)
if not is_there(head) or (by ~= "" and not actor) then return "unknown" end
local is_shown = not actor or tonumber(seq) > tonumber(actor.hidden)
local entry = is_shown and redis.call("XRANGE", messages, seq, seq)[1]
if not entry or entry[2][SENDER] == "" then return "nowhere" end
local age = tonumber(head.max_age)
if age > 0 and entry[2][AT] + age <= moment(head) then return "nowhere" end
if actor and by ~= entry[2][SENDER] and actor.role == "u" then return "denied" end

head.bytes = head.bytes - bury(entry)
append_events(head, call, channel, { event })
return answer(call, "done")
