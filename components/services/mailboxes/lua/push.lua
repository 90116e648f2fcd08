-- Put a message into a mailbox, unless it is full or the sender is blocked. A repeated call returns the same.
-- KEYS    mailbox messages handed dropped sent blocked names
-- ARGV    name sender digest call body limit when_full channel
-- USES    time figure entries days gone dropped listed
-- RETURNS "pushed" and, with blanks between, the call that pushed it, its id, the millisecond, a digest of the body
--         and the ids that were dropped for it; or "full" and the depth; or "blocked"; or "reused", if this sender
--         pushed something else with this client id
limit = tonumber(limit)

-- Drop the oldest messages, at most 1,000, to make room for one.
local function make_room(depth)
  local ids = {}
  for at, entry in ipairs(entries("oldest", "-", math.min(depth - limit + 1, 1000))) do
    local id = id_of(entry)
    ids[at] = id
    redis.call("XDEL", messages, entry[1])
    redis.call("ZREMRANGEBYSCORE", handed, id, id)
    note_dropped(id, entry[2][2])
  end
  bound_dropped()
  redis.call("HSET", mailbox, "last_dropped", ids[#ids], "dropped", text(figure("dropped") + #ids))
  return ids
end

-- Return the next id, and how many messages were pushed before. Ids count up from the microsecond of the first
-- message, so they have no gaps, and no id is reused after the mailbox was erased.
local function next_id()
  local first, last, pushed = unpack(redis.call("HMGET", mailbox, "first", "last", "pushed"))
  if not first then
    first = text(MICROSECONDS)
    redis.call("HSET", mailbox, "first", first)
  end
  local newest = redis.call("XREVRANGE", messages, "+", "-", "COUNT", 1)[1]
  local before = math.max(counted(last), counted(first) - 1, newest and tonumber(id_of(newest)) or 0)
  return text(before + 1), counted(pushed)
end

local known = recorded(digest)
local content = "=" .. string.sub(redis.sha1hex(body), 1, 8) -- a record of an earlier release has none
if known and (string.match(known, "=%x+") or content) ~= content then return { "reused" } end
if known then return { "pushed", known } end
if redis.call("HEXISTS", blocked, sender) == 1 then return { "blocked" } end
local depth, gone = redis.call("XLEN", messages), {}
if depth >= limit and when_full ~= "drop_oldest" then return { "full", depth } end
if depth >= limit then gone = make_room(depth) end

local id, pushed = next_id()
local now = text(NOW)
redis.call("XADD", messages, id .. "-0", "from", sender, "at", now, "body", body)
redis.call("HSET", mailbox, "last", id, "limit", limit, "pushed", text(pushed + 1))
local record = table.concat({ call, id, now, content, unpack(gone) }, " ")
redis.call("HSET", today, digest, record)
bound_memory(limit)
for _, key in ipairs({ mailbox, messages, handed }) do redis.call("PEXPIRE", key, YEAR) end
list(name)
redis.call("PUBLISH", channel, id)
return { "pushed", record }
