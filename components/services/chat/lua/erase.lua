-- Erase the messages and reactions of a person from *most* entries of a chat, from a seq on. An event informs clients
-- that have the messages.
-- KEYS    chat messages mentions own deleted altered changes calls
-- ARGV    person first most call channel
-- USES    head portion packed bury altered event
-- RETURNS how many messages were erased, and the seq at which to continue; 0 at the end
local done = answered_portion(call)
if done then return done end

-- Announce it. The event of the first part covers all earlier messages; later parts change only counts.
local function tell(last, bytes)
  local noted = calls .. "/erased/" .. redis.sha1hex(person)
  if last > tonumber(redis.call("GET", noted) or 0) then
    local head = head_of(chat, "seq", "n", "at", "bytes", "max_age")
    head.bytes = head.bytes - bytes
    local event = "e" .. packed("erased") .. packed("") .. packed(person) .. packed("")
    local told = append_events(head, call, channel, { event })
    if head.max_age ~= "0" then redis.call("PEXPIRE", messages, head.max_age) end
    redis.call("SET", noted, told, "PX", 60000)
  else
    redis.call("HINCRBY", chat, "revision", 1)
    redis.call("HINCRBY", chat, "bytes", 0 - bytes) -- not -bytes, because Redis refuses "-0"
    redis.call("PUBLISH", channel, "erased")
  end
end

local head = head_of(chat, "changed", "max_age")

local function remove_reactions(seq)
  local parts, kept = alterations_of(seq), {}
  for at, part in ipairs(parts) do
    local who = at > 3 and parts[at + 1 - at % 2]
    if who ~= person then kept[#kept + 1] = part end
  end
  if #kept < #parts then alter(head, seq, kept, channel) end
end

local entries = redis.call("XRANGE", messages, first, "+", "COUNT", most)
local gone, bytes, last = 0, 0, 0
for _, entry in ipairs(entries) do
  if entry[2][SENDER] == person then
    gone, bytes, last = gone + 1, bytes + bury(entry), tonumber(seq_of(entry))
  elseif head.changed then
    remove_reactions(seq_of(entry))
  end
end
local on = #entries == tonumber(most) and seq_of(entries[#entries]) + 1 or 0
if gone == 0 then return { 0, on } end -- no answer is stored, because a repeated call finds the same
tell(last, bytes)
return answer_portion(call, gone, on)
