-- Tell in which chats of a bucket something may be left that was said before an instant. Reads only.
-- KEYS[1] chat      prefix to a chat id: HASH, what the chat is and how far it has come
-- KEYS[2] messages  prefix to a chat id: STREAM <seq>-0 -> message
-- ARGV[1..] per chat: id, the millisecond
-- Returns per chat: 1 if something may be left, 0 if nothing is
local chat, messages = KEYS[1], KEYS[2]

local found = {}
for each = 1, #ARGV, 2 do
  local is_there = redis.call("HEXISTS", chat .. ARGV[each], "settings") == 1
  local first = is_there and redis.call("XRANGE", messages .. ARGV[each], "-", "+", "COUNT", 1)[1]
  local at = first and (tonumber(first[2][6]) or 0)
  found[#found + 1] = at and at <= tonumber(ARGV[each + 1]) and 1 or 0
end
return found
