-- List messages without handing them out. Reads only.
-- KEYS[1] messages  STREAM <id>-0 -> message
-- KEYS[2] handed    ZSET "<id> <pull>" by id
-- ARGV[1] the first id that may be listed
-- ARGV[2] how many to list, at least 1
-- ARGV[3] newest or oldest
-- Returns for each, oldest first: id, 1 if it was handed out before, sender, millisecond, body
local messages, handed = KEYS[1], KEYS[2]
local first, limit, is_newest = ARGV[1], ARGV[2], ARGV[3] == "newest"

local found = is_newest and redis.call("XREVRANGE", messages, "+", first, "COUNT", limit)
  or redis.call("XRANGE", messages, first, "+", "COUNT", limit)
local answer = {}
for at = 1, #found do
  local entry = found[is_newest and #found + 1 - at or at]
  local id = string.match(entry[1], "%d+")
  answer[at] = { id, redis.call("ZCOUNT", handed, id, id), entry[2][2], entry[2][4] or "", entry[2][6] or "" }
end
return answer
