-- Replace the body and the mentions of a message, as its sender. Nothing becomes unread: people whom it mentions now
-- are told only if they have not read it yet.
-- KEYS    chat messages members reads mentions rate altered changes calls
-- ARGV    seq sender body characters data_bytes call channel mentioned...
-- USES    time head entry member packed answered altered pace quoted
-- RETURNS "edited" and the millisecond; or "unknown"; "nowhere"; "denied"; "closed"; "muted" and until when; "long"
--         and the limits of text and data; "fast" and the milliseconds until there is room
local said = answered(call)
if said then return { "edited", tonumber(said) } end
local head = head_of(
  chat, "seq", "at", "gone", "closed", "cut", "max_age", "max_text", "max_data", "rate_limit", "rate_period",
  "slow_mode"
)
local member = member_of(sender)
if not is_there(head) or not member then return { "unknown" } end
local entry = tonumber(seq) > tonumber(member.hidden) and redis.call("XRANGE", messages, seq, seq)[1]
local fields, age = entry and entry[2], tonumber(head.max_age)
if not entry or fields[SENDER] == "" then return { "nowhere" } end
if age > 0 and fields[AT] + age <= NOW then return { "nowhere" } end
if fields[SENDER] ~= sender then return { "denied" } end
if head.closed == "1" then return { "closed" } end
local muted_until = tonumber(member.muted_until)
if muted_until == -1 or muted_until > NOW then return { "muted", muted_until } end
local most_text, most_data = tonumber(head.max_text), tonumber(head.max_data)
if tonumber(characters) > most_text or tonumber(data_bytes) > most_data then
  return { "long", most_text, most_data }
end

local parts = alterations_of(seq)
local before, body_before = parts[2], parts[3]
if parts[1] == "" then before, body_before = fields[MENTIONS], fields[BODY] end

-- Return the stored form of the mentions: the members among *mentioned*, and the person to whom it replies.
local function named_now()
  local told, named = { [sender] = true }, ""
  local reply_to = fields[REPLY]
  mentioned[#mentioned + 1] = reply_to and quoted_sender(reply_to, member.hidden, head.max_age) or nil
  for _, person in ipairs(mentioned) do
    if not told[person] and redis.call("HEXISTS", members, person) == 1 then
      told[person], named = true, named .. packed(person)
    end
  end
  return named
end

-- Correct the unread mentions of the people mentioned before and now.
local function address(named)
  for _, person in ipairs(unpacked(before)) do redis.call("ZREM", mentions .. "/" .. person, seq) end
  for _, person in ipairs(unpacked(named)) do
    if tonumber(redis.call("ZSCORE", reads, person) or seq) < tonumber(seq) then
      local key = mentions .. "/" .. person
      redis.call("ZREMRANGEBYSCORE", key, "-inf", head.cut)
      redis.call("ZADD", key, seq, seq)
      if age > 0 then redis.call("PEXPIRE", key, age) end
    end
  end
end

local named = named_now()
if named == before and body == body_before then
  return { "edited", tonumber(parts[1] ~= "" and parts[1] or fields[AT]) }
end
local slow = member.role == "u" and tonumber(head.slow_mode) or 0
local wait = pay(sender, tonumber(head.rate_limit), tonumber(head.rate_period), slow, false)
if wait > 0 then return { "fast", wait } end
address(named)
parts[1], parts[2], parts[3] = text(math.max(NOW, tonumber(head.at))), named, body
alter(head, seq, parts, channel)
return { "edited", tonumber(answer(call, parts[1])) }
