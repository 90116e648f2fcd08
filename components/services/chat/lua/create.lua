-- Create a chat with its first members and its first message; after an earlier one of its id its sequence goes on.
-- KEYS[1] chat      HASH, what the chat is and how far it has come
-- KEYS[2] messages  STREAM <seq>-0 -> message
-- KEYS[3] members   HASH person -> words: role, number, joined at, sees after, ordinal read, muted until, call
-- KEYS[4] reads     ZSET person by the seq up to which he has read
-- KEYS[5] sent      prefix to a part: HASH digest of sender and client id -> seq
-- KEYS[6] names     ZSET chat id by the millisecond of its last message
-- ARGV[1] chat id
-- ARGV[2] client id, which also names the call
-- ARGV[3] title
-- ARGV[4] settings, words
-- ARGV[5] body of the event
-- ARGV[6] body of the first message; "" for none
-- ARGV[7] owner
-- ARGV[8..] per member, the owner first: person, channel of his inbox
-- Returns "created", also if that was done before by this call, or "exists"
local chat, messages, members, reads, sent, names = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local id, client_id, title, settings, event, message = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local owner = ARGV[7]

local old = redis.call("HMGET", chat, "seq", "n", "at", "gone", "created_by", "call")
if old[1] and not old[4] then
  return (old[5] == owner and old[6] == client_id) and "created" or "exists"
end
local time = redis.call("TIME")
local before, counted = tonumber(old[1] or 0), tonumber(old[2] or 0)
local now = math.max(time[1] * 1000 + math.floor(time[2] / 1000), tonumber(old[3] or 0))
local seq, n, bytes = before, counted, 0
local function append(sender, call, body)
  seq, bytes = seq + 1, bytes + #sender + #call + #body
  redis.call("XADD", messages, seq .. "-0", "s", sender, "c", call, "t", now, "n", n, "m", "", "b", body)
end

append("", client_id, event)
if message ~= "" then
  n = n + 1
  append(owner, client_id, message)
  redis.call("HSET", sent .. "0:0", string.sub(redis.sha1hex(owner .. "\0" .. client_id), 1, 16), seq)
end
redis.call("DEL", chat)
redis.call("HSET", chat, "seq", seq, "n", n, "at", now, "bytes", bytes, "cut", before, "base", counted)
redis.call("HSET", chat, "level", 0, "revision", 0, "owners", 1, "joined", (#ARGV - 7) / 2, "settings", settings)
redis.call("HSET", chat, "title", title, "created_at", now, "created_by", owner, "call", client_id)
redis.call("HSET", chat, "out", time[1] .. "." .. time[2])
local age = tonumber(string.match(settings, "^%S+ %S+ %S+ (%S+)"))
if age > 0 then for _, key in ipairs({ messages, sent .. "0:0" }) do redis.call("PEXPIRE", key, age) end end
for each = 8, #ARGV, 2 do
  local person, is_owner = ARGV[each], each == 8
  local words = { is_owner and "o" or "u", (each - 6) / 2, now, before, is_owner and n or counted, 0, "-" }
  redis.call("HSET", members, person, table.concat(words, " "))
  redis.call("ZADD", reads, is_owner and seq or before, person)
  redis.call("PUBLISH", ARGV[each + 1], id)
end
redis.call("ZADD", names, now, id)
return "created"
