-- Let a person out of a chat, at their own wish or another's; with the last one the chat goes. A mute stays.
-- KEYS[1] chat      HASH, what the chat is and how far it has come
-- KEYS[2] messages  STREAM <seq>-0 -> message
-- KEYS[3] members   HASH person -> words: role, number, joined at, sees after, ordinal read, muted until, call
-- KEYS[4] reads     ZSET person by the seq up to which he has read
-- KEYS[5] mentions  prefix to a person: ZSET
-- KEYS[6] own       prefix to a person: ZSET
-- KEYS[7] blocked   HASH person who may not come back -> since when
-- KEYS[8] calls     prefix to a call: STRING, what it was answered
-- KEYS[9] sent      prefix to a part: HASH
-- KEYS[10] deleted  ZSET
-- KEYS[11] names    ZSET chat id by the millisecond of its last message
-- KEYS[12] muted    ZSET person who left while they were muted by the millisecond until when
-- ARGV[1] chat id
-- ARGV[2] person
-- ARGV[3] by whom; "" for the system
-- ARGV[4] call
-- ARGV[5] body of the event
-- ARGV[6] "left", at their own wish; "kicked"; "blocked", if they may not come back; "erased", if whoever is about to
--         let them in has to write the hint in their inbox once more
-- ARGV[7] channel of the chat
-- ARGV[8] channel of his inbox
-- Returns "removed"; "blocked", of who was not in it; "nothing"; "unknown"; "denied"; "absent"; "crowded", if so many
--         are blocked already
local chat, messages, members, reads, mentions, own = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local blocked, calls, sent, deleted, names, mutes = KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local id, person, by, call, body, kind = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local channel, inbox = ARGV[7], ARGV[8]
local MOST_MUTED, MOST_BLOCKED = 10000, 10000 -- who left while they were muted, and are remembered; who are blocked
local RANK, YEAR = { o = 3, m = 2, u = 1 }, 366 * 86400000 -- milliseconds

local answered = redis.call("GET", calls .. call)
if answered then return answered end
local head = redis.call("HMGET", chat, "seq", "n", "at", "bytes", "owners", "level", "gone")
local record, actor = redis.call("HGET", members, person), redis.call("HGET", members, by)
if not head[1] or head[7] or (by ~= "" and not actor) then return "unknown" end
local rank = by == "" and 4 or RANK[string.sub(actor, 1, 1)]
local role = record and string.sub(record, 1, 1)
if kind ~= "left" and rank <= (record and RANK[role] or 1) then return "denied" end
local time = redis.call("TIME")
local out = time[1] .. "." .. time[2]
if not record and kind == "erased" then
  redis.call("HDEL", members, person) -- changes nothing, but a server that is full takes what begins with it
  redis.call("HSET", chat, "out", out)
end
if not record and kind ~= "blocked" then return "absent" end
local is_crowded = kind == "blocked" and redis.call("HLEN", blocked) >= MOST_BLOCKED
if is_crowded and redis.call("HEXISTS", blocked, person) == 0 then return "crowded" end
local now = math.max(time[1] * 1000 + math.floor(time[2] / 1000), head[3])
local is_new = kind == "blocked" and redis.call("HEXISTS", blocked, person) == 0
if not record and not is_new then return "nothing" end

-- What frees memory comes first: so a server that is full takes all of it.
redis.call("HDEL", members, person)
if is_new then redis.call("HSET", blocked, person, now) end
redis.call("ZREM", reads, person)
redis.call("DEL", mentions .. person, own .. person)
local seq, bytes, owners = head[1], head[4], tonumber(head[5]) - (role == "o" and 1 or 0)
local function append(event)
  seq, bytes = seq + 1, bytes + #call + #event
  redis.call("XADD", messages, seq .. "-0", "s", "", "c", call, "t", now, "n", head[2], "m", "", "b", event)
end
if redis.call("HLEN", members) == 0 then
  for part = 0, head[6] do
    for each = 0, 4 ^ part - 1 do redis.call("UNLINK", sent .. part .. ":" .. each) end
  end
  redis.call("UNLINK", chat, messages, members, reads, blocked, deleted, mutes)
  redis.call("HSET", chat, "seq", seq, "n", head[2], "at", now, "gone", "1")
  redis.call("PEXPIRE", chat, YEAR)
  redis.call("ZREM", names, id)
else
  -- A stream that was too old as a whole has gone by itself.
  if redis.call("EXISTS", messages) == 0 then
    redis.call("HSET", chat, "cut", seq, "base", head[2])
    bytes = 0
  end
  append(body)
  local muted = record and string.match(record, "^%S+ %S+ %S+ %S+ %S+ (%S+)") or "0"
  redis.call("ZREMRANGEBYSCORE", mutes, "-inf", now)
  if muted == "-1" or (tonumber(muted) or 0) > now then
    redis.call("ZADD", mutes, muted == "-1" and "+inf" or muted, person)
    redis.call("ZREMRANGEBYRANK", mutes, 0, -MOST_MUTED - 1)
  end
  -- The first moderator takes over, else the first member.
  local heir, best = "", { 0 }
  for _, each in ipairs(owners == 0 and redis.call("ZRANGE", reads, 0, -1) or {}) do
    local theirs = redis.call("HGET", members, each)
    local place = { RANK[string.sub(theirs, 1, 1)], tonumber(string.match(theirs, "^%a (%S+)")) }
    if place[1] > best[1] or (place[1] == best[1] and place[2] < best[2]) then heir, best = each, place end
  end
  if owners == 0 then
    owners = 1
    redis.call("HSET", members, heir, "o" .. string.sub(redis.call("HGET", members, heir), 2))
    append("e4:role0:" .. #heir .. ":" .. heir .. "5:owner")
  end
  redis.call("HSET", chat, "seq", seq, "at", now, "bytes", bytes, "owners", owners, "out", out)
end
local answer = record and "removed" or "blocked"
redis.call("SET", calls .. call, answer, "PX", 60000)
redis.call("PUBLISH", channel, seq)
redis.call("PUBLISH", inbox, "left")
return answer
