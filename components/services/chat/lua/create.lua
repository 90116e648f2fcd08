-- Create a chat with its first members and its first message. It continues the sequence of an earlier chat with the
-- same id. *more* has the people, the owner first, then field and value of each setting. The client id is that of the
-- first message, if there is one, and identifies the call; *content* is a digest of what is asked. *inboxes* is the
-- prefix of the channels of inboxes.
-- KEYS    chat messages members reads sent names altered changes
-- ARGV    id client_id content title event message inboxes people more...
-- USES    time head append member digest
-- RETURNS "created", also for a repeated call, but "ended" if the chat has ended since; "reused", if the call came
--         with other content; or "exists"
local owner, old = more[1], head_of(chat, "seq", "n", "at", "gone", "created_by", "call", "content", "made")
local is_repeated = old.created_by == owner and old.call == client_id or old.made == digest_of(owner, client_id)
if is_repeated then return (old.content or content) == content and (old.gone and "ended" or "created") or "reused" end
if is_there(old) then return "exists" end
local before, counted = tonumber(old.seq or 0), tonumber(old.n or 0)
local now = math.max(NOW, tonumber(old.at or 0))
local seq, n, bytes = before + 1, counted, #client_id + #event
append(seq, "", client_id, now, n, "", event)
if message ~= "" then
  seq, n, bytes = seq + 1, n + 1, bytes + #owner + #client_id + #message
  append(seq, owner, client_id, now, n, "", message)
  redis.call("HSET", sent .. "/0:0", digest_of(owner, client_id), seq)
end
redis.call("DEL", chat, altered, changes) -- a release without edits leaves the latter behind
-- Redis searches a small HASH from its beginning, so the fields that each message needs come first.
redis.call("HSET", chat, "seq", seq, "n", n, "at", now, "bytes", bytes, "cut", before, "level", 0)
redis.call("HSET", chat, "due_at", 0, "closed", 0, unpack(more, people + 1))
redis.call("HSET", chat, "base", counted, "revision", 0, "owners", 1, "joined", people, "out", text(MICROSECONDS))
redis.call("HSET", chat, "title", title, "created_at", now, "created_by", owner)
redis.call("HSET", chat, "call", client_id, "content", content)
local age = tonumber(redis.call("HGET", chat, "max_age"))
if age > 0 then for _, key in ipairs({ messages, sent .. "/0:0" }) do redis.call("PEXPIRE", key, age) end end
for at = 1, people do
  local person, is_owner = more[at], at == 1
  redis.call("HSET", members, person, write_member({
    role = is_owner and "o" or "u", number = at, joined_at = text(now), hidden = before,
    read_n = is_owner and n or counted, muted_until = 0, call = "-",
    has_written = is_owner and message ~= "" and 1 or 0,
  }))
  redis.call("ZADD", reads, is_owner and seq or before, person)
  redis.call("PUBLISH", inboxes .. person, id)
end
redis.call("ZADD", names, now, id)
return "created"
