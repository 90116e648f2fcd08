-- Note in an inbox that its owner may be in a chat, or see whether that may be done. It is done before they are in
-- the chat, so that no chat is without its hint. *most* is how many hints there may be, 0 for any number.
-- KEYS    hints
-- ARGV    id most is_done
-- USES    time
-- RETURNS 1; 0 if there are so many already, and this is none of them
local score = redis.call("ZSCORE", hints, id)
if not score and tonumber(most) > 0 and redis.call("ZCARD", hints) >= tonumber(most) then return 0 end
-- The score differs each time.
if is_done == "1" then redis.call("ZADD", hints, math.max(NOW, (score or 0) + 1), id) end
return 1
