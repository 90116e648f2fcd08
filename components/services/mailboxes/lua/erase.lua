-- Erase a mailbox and everything stored about it. A repeated call changes nothing.
-- KEYS    mailbox messages handed dropped sent blocked names
-- ARGV    name
-- USES    time
-- RETURNS 1
-- The next day's part is there if the clock had jumped ahead.
for ago = -1, 2 do redis.call("DEL", sent .. ":" .. DAY - ago) end
redis.call("DEL", mailbox, messages, handed, dropped, blocked)
redis.call("ZREM", names, name)
return 1
