-- Refuse the mail of a sender from now on. A repeated call changes nothing.
-- KEYS    blocked
-- ARGV    sender most
-- USES    time
-- RETURNS 1, or 0 if *most* senders are blocked already and this one is not
if redis.call("HEXISTS", blocked, sender) == 1 then return 1 end
if redis.call("HLEN", blocked) >= tonumber(most) then return 0 end
redis.call("HSET", blocked, sender, text(NOW))
return 1
