-- Return a part of the history of a chat, for a member, or for "", who may see everything. It ends before the seq
-- *before*, or begins after *after*; unused ones are "". Only reads.
-- KEYS    chat messages members
-- ARGV    person before after most most_bytes
-- USES    time head member aged shown
-- RETURNS the oldest seq that they may see, 1 if there are more, and the entries, oldest first; nothing for
--         a stranger
local head, member = head_of(chat, "seq", "cut", "max_age", "gone"), person ~= "" and member_of(person)
if not is_there(head) or (person ~= "" and not member) then return {} end
local age = tonumber(head.max_age or "") or 0
local cut, last = tonumber(head.cut or "") or 0, tonumber(head.seq) or 2 ^ 53
if cut >= 2 ^ 53 then cut = 0 end -- the stored value is damaged
local low = math.max(member and tonumber(member.hidden) or 0, cut)
if age > 0 and NOW >= age then low = aged(messages, low, 0, last, NOW - age) end
local first = redis.call("XRANGE", messages, low + 1, "+", "COUNT", 1)[1]
local start = first and tonumber(seq_of(first)) or (tonumber(head.seq) or low) + 1
local found
if after ~= "" then
  found = redis.call("XRANGE", messages, math.max(low, tonumber(after)) + 1, "+", "COUNT", most + 1)
else
  local to = before == "" and "+" or text(math.max(0, before - 1))
  found = redis.call("XREVRANGE", messages, to, low + 1, "COUNT", most + 1)
end
local kept, has_more = shown(found, after == "", tonumber(most), tonumber(most_bytes))
return { start, has_more, kept }
