-- Let persons into a chat; who is in it stays as he is.
-- KEYS[1] chat      HASH, what the chat is and how far it has come
-- KEYS[2] messages  STREAM <seq>-0 -> message
-- KEYS[3] members   HASH person -> words: role, number, joined at, sees after, ordinal read, muted until, call
-- KEYS[4] reads     ZSET person by the seq up to which he has read
-- KEYS[5] blocked   HASH person who may not come back -> since when
-- KEYS[6] calls     prefix to a call: STRING, what it was answered
-- KEYS[7] muted     ZSET person who left while they were muted by the millisecond until when
-- ARGV[1] by whom; "" for the system
-- ARGV[2] call
-- ARGV[3] 1 to do it, 0 to see whether it may be done
-- ARGV[4] channel of the chat
-- ARGV[5] when somebody was let out last, as it was told before their hints were written; "" if that is to be told
-- ARGV[6..] per person: person, body of the event, channel of their inbox
-- Returns "added", when somebody was let out last, and who was new; "again", if that was since ARGV[5]; "unknown";
--         "closed"; "denied"; "blocked" and who; "full" and the limit
local chat, messages, members, reads, blocked, calls = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local mutes = KEYS[7]
local by, call, is_done, channel, known = ARGV[1], ARGV[2], ARGV[3] == "1", ARGV[4], ARGV[5]

local head = redis.call("HMGET", chat, "seq", "n", "at", "bytes", "joined", "settings", "closed", "gone", "out")
if not head[1] or head[8] then return { "unknown" } end
local seq, n, bytes, joined = head[1], tonumber(head[2]), head[4], head[5]
local shown, most, is_open = string.match(head[6], "^(%S+) %S+ %S+ %S+ %S+ %S+ %S+ (%S+) %S+ %S+ %S+ (%S+)")
local out = head[9] or "0"
local record, new, again, is_joining = redis.call("HGET", members, by), {}, { "added", out }, false
for each = 6, #ARGV, 3 do
  is_joining = by ~= "" and #ARGV == 8 and ARGV[each] == by
  local there = redis.call("HGET", members, ARGV[each])
  if not there then table.insert(new, each) end
  if there and string.match(there, "%S+$") == call then table.insert(again, ARGV[each]) end
end
if redis.call("EXISTS", calls .. call) == 1 then return again end
-- If somebody was let out since then, they may have been erased, and their hints as well.
if is_done and known ~= "" and known ~= out then return { "again" } end
if by ~= "" and not record and not (is_joining and is_open == "1") then return { "unknown" } end
if record and #new > 0 and is_open == "0" and string.sub(record, 1, 1) == "u" then return { "denied" } end
for _, each in ipairs(new) do
  if redis.call("HEXISTS", blocked, ARGV[each]) == 1 then return { "blocked", ARGV[each] } end
end
if is_joining and head[7] and not record then return { "closed" } end
if #new > 0 and redis.call("HLEN", members) + #new > tonumber(most) then return { "full", tonumber(most) } end

local time = redis.call("TIME")
local now = math.max(time[1] * 1000 + math.floor(time[2] / 1000), head[3])
local added, low, high = { "added", out }, 0, shown == "-" and 0 or seq + 1
-- The last seq that he may not see; found by halves, since ordinals grow with the sequence.
while is_done and high - low > 1 do
  local middle = math.floor((low + high) / 2)
  local entry = shown ~= "0" and redis.call("XRANGE", messages, middle, high, "COUNT", 1)[1]
  if shown == "0" then
    low = high - 1
  elseif entry and tonumber(entry[2][8]) <= n - shown then
    low = tonumber(string.match(entry[1], "%d+"))
  else
    high = middle
  end
end
-- A stream that was too old as a whole has gone by itself.
if is_done and #new > 0 and redis.call("EXISTS", messages) == 0 then
  redis.call("HSET", chat, "cut", head[1], "base", n)
  bytes = 0
end
for _, each in ipairs(new) do
  local person, body = ARGV[each], ARGV[each + 1]
  table.insert(added, person)
  if is_done then
    seq, joined, bytes = seq + 1, joined + 1, bytes + #call + #body
    redis.call("XADD", messages, seq .. "-0", "s", "", "c", call, "t", now, "n", n, "m", "", "b", body)
    local muted = redis.call("ZSCORE", mutes, person) or "0"
    if muted == "inf" then muted = "-1" end
    redis.call("ZREM", mutes, person)
    redis.call("HSET", members, person, table.concat({ "u", joined, now, low, n, muted, call }, " "))
    redis.call("ZADD", reads, seq, person)
    redis.call("PUBLISH", ARGV[each + 2], "joined")
  end
end
if is_done and #new > 0 then
  redis.call("HSET", chat, "seq", seq, "at", now, "bytes", bytes, "joined", joined)
  redis.call("SET", calls .. call, "1", "PX", 60000)
  redis.call("PUBLISH", channel, seq)
end
return added
