-- Note that a member is typing. That ends by itself after six seconds, and with their message. Those who have the
-- chat open are woken if somebody begins, unless they are more than *most_woken*. At most *most* people are noted at
-- once.
-- KEYS    chat members here typing
-- ARGV    person most most_woken channel
-- USES    time member present
-- RETURNS "typing"; "unknown"; "closed"; "muted" and until when; "crowded"
local member = member_of(person)
if not member then return { "unknown" } end
if redis.call("HGET", chat, "closed") == "1" then return { "closed" } end
local muted_until = tonumber(member.muted_until)
if muted_until == -1 or muted_until > NOW then return { "muted", muted_until } end
local ends_at = tonumber(redis.call("ZSCORE", typing, person) or "0")
local is_new = ends_at <= NOW or ends_at > NOW + TYPED
if not is_new and ends_at > NOW + TYPED / 2 then return { "typing" } end -- noted not long ago

redis.call("ZREMRANGEBYSCORE", typing, "-inf", NOW)
redis.call("ZREMRANGEBYSCORE", typing, "(" .. NOW + TYPED, "+inf")
if is_new and redis.call("ZCARD", typing) >= tonumber(most) then return { "crowded" } end
redis.call("ZADD", typing, NOW + TYPED, person)
redis.call("PEXPIRE", typing, TYPED)
if is_new and redis.call("ZCOUNT", here, "(" .. NOW - LEASE, NOW) <= tonumber(most_woken) then
  redis.call("PUBLISH", channel, "typing")
end
return { "typing" }
