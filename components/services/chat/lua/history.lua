-- Return a part of the history of a chat, for a member, or for "", who may see everything. It ends before the seq
-- *before*, begins after *after*, or has *around* in its middle; unused ones are "". Only reads.
-- KEYS    chat messages members altered
-- ARGV    person before after around most most_bytes
-- USES    time head member aged shown
-- RETURNS the oldest seq that they may see, 1 if there are more in the direction asked (before, of *around*), the
--         entries, oldest first, and 1 if there are more after *around*; nothing for a stranger
most, most_bytes = tonumber(most), tonumber(most_bytes)
local head, member = head_of(chat, "seq", "cut", "max_age", "gone", "changed"), person ~= "" and member_of(person)
if not is_there(head) or (person ~= "" and not member) then return {} end
local age = tonumber(head.max_age or "") or 0
local cut, last = tonumber(head.cut or "") or 0, tonumber(head.seq) or 2 ^ 53
if cut >= 2 ^ 53 then cut = 0 end -- the stored value is damaged
local low = math.max(member and tonumber(member.hidden) or 0, cut)
if age > 0 and NOW >= age then low = aged(messages, low, 0, last, NOW - age) end
local first = redis.call("XRANGE", messages, low + 1, "+", "COUNT", 1)[1]
local start = first and tonumber(seq_of(first)) or (tonumber(head.seq) or low) + 1

local source = { stream = messages, low = low, altered = head.changed and altered }

local function later(seq, count, bytes)
  local found = redis.call("XRANGE", messages, math.max(low, seq) + 1, "+", "COUNT", count + 1)
  return shown(source, found, false, count, bytes)
end

local function earlier(to, count, bytes)
  local found = redis.call("XREVRANGE", messages, to, low + 1, "COUNT", count + 1)
  return shown(source, found, true, count, bytes)
end

if around ~= "" then
  local half = math.ceil(most / 2)
  local kept, has_older = earlier(around, half, most_bytes / 2)
  local after, has_newer = later(tonumber(around), math.max(1, most - half), most_bytes / 2)
  for _, entry in ipairs(after) do table.insert(kept, entry) end
  return { start, has_older, kept, has_newer }
end
local kept, has_more
if after ~= "" then
  kept, has_more = later(tonumber(after), most, most_bytes)
else
  kept, has_more = earlier(before == "" and "+" or text(math.max(0, before - 1)), most, most_bytes)
end
return { start, has_more, kept, 0 }
