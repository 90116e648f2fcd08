-- Return which chats of a bucket may still have messages or reactions of a person from before an instant. Only reads.
-- The keys are the prefixes of the keys of the chats. *asked* has the id and the millisecond for each chat. The last
-- hundred entries before it are looked at: earlier ones may be theirs.
-- KEYS    chat messages altered
-- ARGV    person asked...
-- USES    head entry halves packed
-- RETURNS for each chat: 1 if such may be left, else 0
local MOST = 100

local function has_left_something(id, before)
  local head, stream = head_of(chat .. id, "seq", "gone", "cut"), messages .. id
  if not is_there(head) then return false end
  local last = last_fitting(stream, tonumber(head.cut) or 0, head.seq + 1, function(fields)
    return (tonumber(fields[AT]) or 0) <= before
  end)
  local entries = redis.call("XREVRANGE", stream, last, "-", "COUNT", MOST)
  for _, entry in ipairs(entries) do
    if entry[2][SENDER] == person then return true end
    local changed = redis.call("HGET", altered .. id, seq_of(entry))
    if changed and string.find(changed, packed(person), 1, true) then return true end
  end
  return #entries == MOST
end

local found = {}
for at = 1, #asked, 2 do
  found[#found + 1] = has_left_something(asked[at], tonumber(asked[at + 1])) and 1 or 0
end
return found
