-- A part of what a chat's history has, for a member or for who looks after it. Changes nothing.
-- KEYS[1] chat      HASH, what the chat is and how far it has come
-- KEYS[2] messages  STREAM <seq>-0 -> message
-- KEYS[3] members   HASH person -> words: role, number, joined at, sees after, ordinal read, muted until, call
-- ARGV[1] person; "" for who may see all
-- ARGV[2] seq before which it ends; "" for none
-- ARGV[3] seq after which it begins; "" for none
-- ARGV[4] so many messages at most
-- ARGV[5] so many bytes of bodies, if that is more than one
-- Returns the oldest seq that he may see, 1 if there is more, and the entries, oldest first; nothing for a stranger
local chat, messages, members = KEYS[1], KEYS[2], KEYS[3]
local person, before, after, most, most_bytes = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])

local head = redis.call("HMGET", chat, "seq", "cut", "settings", "gone")
local record = person == "" or redis.call("HGET", members, person)
if not (record and head[1]) or head[4] then return {} end
local seen = person == "" and 0 or tonumber(string.match(record, "^%S+ %S+ %S+ (%S+)"))
local time = redis.call("TIME")
local age = tonumber(string.match(head[3] or "", "^%S+ %S+ %S+ (%S+)")) or 0
local oldest = age > 0 and time[1] * 1000 + math.floor(time[2] / 1000) - age or -1

local cut = tonumber(head[2]) or 0
if cut >= 2 ^ 53 then cut = 0 end -- it is damaged
-- The first seq that is not too old: found by halves, since instants grow with the sequence.
local low, high = math.max(seen or 0, cut), (tonumber(head[1]) or 2 ^ 53) + 1
while oldest >= 0 and high - low > 1 do
  local middle = math.floor((low + high) / 2)
  local entry = redis.call("XRANGE", messages, middle, high, "COUNT", 1)[1]
  if entry and (tonumber(entry[2][6]) or 0) <= oldest then
    low = tonumber(string.match(entry[1], "%d+"))
  else
    high = middle
  end
end
local first = redis.call("XRANGE", messages, low + 1, "+", "COUNT", 1)[1]
local start = first and tonumber(string.match(first[1], "%d+")) or (tonumber(head[1]) or low) + 1
local found
if after ~= "" then
  found = redis.call("XRANGE", messages, math.max(low, tonumber(after)) + 1, "+", "COUNT", most + 1)
else
  local to = before == "" and "+" or string.format("%.0f", math.max(0, before - 1))
  found = redis.call("XREVRANGE", messages, to, low + 1, "COUNT", most + 1)
end
local kept, bytes, has_more = {}, 0, 0
for at, entry in ipairs(found) do
  local fields = entry[2]
  bytes = bytes + #(fields[12] or "")
  if at > most or (at > 1 and bytes > most_bytes) then
    has_more = 1
    break
  end
  local plain = { entry[1] }
  for each = 2, 12, 2 do table.insert(plain, fields[each] or "") end -- a damaged one may have fewer
  table.insert(kept, after ~= "" and at or 1, plain)
end
return { start, has_more, kept }
