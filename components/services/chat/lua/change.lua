-- Change fields of a chat: its title, its settings, whether it is closed. *facts* repeats three words: the name, the
-- value that it must have now ("*" for any), and the new value. *least* is the letter of the lowest role that may do
-- it.
-- KEYS    chat messages members calls sent reads mentions own altered changes
-- ARGV    least by call event channel facts...
-- USES    head member answered sent event
-- RETURNS "done"; "nothing"; "unknown"; "denied"; "other", if a field does not have the value that it must have
local said = answered(call)
if said then return said end
local head, rank = head_of(chat, "seq", "n", "at", "bytes", "gone", "level"), rank_of(by)
if not is_there(head) or not rank then return "unknown" end
if rank < RANK[least] then return "denied" end

-- The keys that count or recognise messages must live as long as the messages.
local function expire_all(age)
  local keys = all_parts(head.level)
  for _, key in ipairs({ messages, altered, changes }) do table.insert(keys, key) end
  for _, person in ipairs(redis.call("ZRANGE", reads, 0, -1)) do
    table.insert(keys, mentions .. "/" .. person)
    table.insert(keys, own .. "/" .. person)
  end
  for _, key in ipairs(keys) do
    if age > 0 then redis.call("PEXPIRE", key, age) else redis.call("PERSIST", key) end
  end
end

local changed = {}
for at = 1, #facts, 3 do
  local name, must, value = facts[at], facts[at + 1], facts[at + 2]
  local before = redis.call("HGET", chat, name) or ""
  if before ~= value and must ~= "*" and must ~= before then return "other" end
  if before ~= value then changed[name] = value end
end
if next(changed) == nil then return "nothing" end
append_events(head, call, channel, { event })
for name, value in pairs(changed) do redis.call("HSET", chat, name, value) end
if changed.max_age or changed.drop_read_after then redis.call("HSET", chat, "due_at", 0) end
if changed.max_age then expire_all(tonumber(changed.max_age)) end
return answer(call, "done")
