-- Erase what a person has sent to a chat, among *most* entries from a seq on. An event tells those who have it.
-- KEYS    chat messages mentions own deleted calls
-- ARGV    person first most call channel
-- USES    head portion packed bury event
-- RETURNS how many messages are gone, and the seq at which to go on; 0 at the end
local done = answered_portion(call)
if done then return done end

-- Tell it. The event of the first part is for all that was sent before it; later parts change counts.
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
    redis.call("HINCRBY", chat, "bytes", 0 - bytes) -- what is written as "-0" is refused
    redis.call("PUBLISH", channel, "erased")
  end
end

local entries = redis.call("XRANGE", messages, first, "+", "COUNT", most)
local gone, bytes, last = 0, 0, 0
for _, entry in ipairs(entries) do
  if entry[2][SENDER] == person then
    gone, bytes, last = gone + 1, bytes + bury(entry), tonumber(seq_of(entry))
  end
end
local on = #entries == tonumber(most) and seq_of(entries[#entries]) + 1 or 0
if gone == 0 then return { 0, on } end -- asked again, the same is found
tell(last, bytes)
return answer_portion(call, gone, on)
