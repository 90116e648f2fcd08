-- Add a member's reaction to a message, or remove it.
-- KEYS    chat messages members rate altered changes calls
-- ARGV    seq person emoji is_on call channel
-- USES    time head entry member answered altered pace
-- RETURNS "done"; or "unknown"; "nowhere"; "closed"; "muted" and until when; "many" and the limits of reactions and
--         of different ones; "fast" and the milliseconds until there is room

-- The most reactions to a message in chats of earlier releases, and the most different ones in any chat.
local USUAL, MOST_KINDS = 200, 20

local said = answered(call)
if said then return { said } end
local head, member = head_of(
  chat, "seq", "gone", "closed", "max_age", "max_reactions", "rate_limit", "rate_period", "slow_mode"
), member_of(person)
if not is_there(head) or not member then return { "unknown" } end
local entry = tonumber(seq) > tonumber(member.hidden) and redis.call("XRANGE", messages, seq, seq)[1]
if not entry or entry[2][SENDER] == "" then return { "nowhere" } end
local age = tonumber(head.max_age)
if age > 0 and entry[2][AT] + age <= NOW then return { "nowhere" } end
if head.closed == "1" then return { "closed" } end
local muted_until = tonumber(member.muted_until)
if muted_until == -1 or muted_until > NOW then return { "muted", muted_until } end

-- Earlier releases stored an emoji with and without the variation selector, U+FE0F, as two.
local function kind_of(text) return (text:gsub("\239\184\143", "")) end
local parts, kinds, others, places = alterations_of(seq), {}, 0, {}
for at = 4, #parts, 2 do
  local kind = kind_of(parts[at])
  if kind == kind_of(emoji) and parts[at + 1] == person then table.insert(places, 1, at) end
  if not kinds[kind] then kinds[kind], others = true, others + 1 end
end
if (#places > 0) == (is_on == "1") then return { "done" } end
local most = tonumber(head.max_reactions or USUAL)
if is_on == "1" and ((#parts - 3) / 2 >= most or (not kinds[kind_of(emoji)] and others >= MOST_KINDS)) then
  return { "many", most, MOST_KINDS }
end
local slow = member.role == "u" and tonumber(head.slow_mode) or 0
local wait = pay(person, tonumber(head.rate_limit), tonumber(head.rate_period), slow, false)
if wait > 0 then return { "fast", wait } end

for _, place in ipairs(places) do
  for _ = 1, 2 do table.remove(parts, place) end
end
if is_on == "1" then
  for _, word in ipairs({ emoji, person }) do table.insert(parts, word) end
end
alter(head, seq, parts, channel)
if member.has_written == "0" then
  member.has_written = 1
  redis.call("HSET", members, person, write_member(member))
end
return { answer(call, "done") }
