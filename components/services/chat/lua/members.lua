-- Return the members of a chat and their reading positions, for a member, or for "", who may see everything. Only
-- reads. When members last had the chat open is told if *tells_presence* is "1", but not to somebody who is muted.
-- KEYS    chat members reads mentions own deleted messages here
-- ARGV    person tells_presence
-- USES    time head member aged
-- RETURNS the millisecond, and per member: person, record, seq, unread, mentions, and the millisecond of their last
--         sign of life, "" for none; nothing for a stranger
local head = head_of(chat, "n", "cut", "base", "at", "max_age", "gone", "seq")
if not head.n or head.gone then return {} end
local asker = person ~= "" and member_of(person)
if person ~= "" and not asker then return {} end
local muted_until = asker and tonumber(asker.muted_until) or 0
local seen, are_seen = {}, {}
if tells_presence == "1" and muted_until ~= -1 and muted_until <= NOW then
  are_seen = redis.call("ZRANGE", here, 0, -1, "WITHSCORES")
end
for at = 1, #are_seen, 2 do seen[are_seen[at]] = are_seen[at + 1] end
local n, cut, base = tonumber(head.n) or 0, tonumber(head.cut or "") or 0, tonumber(head.base or "") or 0
local age, last = tonumber(head.max_age or "") or 0, tonumber(head.seq or "") or cut
if age > 0 and (tonumber(head.at or "") or 0) + age <= NOW then
  cut, base = last, n
elseif age > 0 then
  cut, base = aged(messages, cut, base, last, NOW - age)
end
local found, all = { NOW }, redis.call("ZRANGE", reads, 0, -1, "WITHSCORES")
for at = 1, #all, 2 do
  local who, read = all[at], tonumber(all[at + 1])
  local record, after = redis.call("HGET", members, who) or "", "(" .. math.max(read, cut)
  local read_n = read > cut and tonumber(read_member(record).read_n) or base
  local unread = n - read_n - redis.call("ZCOUNT", own .. "/" .. who, after, "+inf")
    - redis.call("ZCOUNT", deleted, after, "+inf")
  local mentioned = redis.call("ZCOUNT", mentions .. "/" .. who, after, "+inf")
  table.insert(found, { who, record, read, unread, mentioned, seen[who] or "" })
end
return found
