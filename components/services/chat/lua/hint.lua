-- Write a hint into an inbox that its owner may be in a chat, or check whether there is room for it. The hint is
-- written before the person is added to the chat, so that no chat lacks its hint. *most* is the limit of hints, 0 for
-- no limit.
-- KEYS    hints
-- ARGV    id most is_done
-- USES    time
-- RETURNS 1; 0 if the limit is reached and this chat has no hint yet
local score = redis.call("ZSCORE", hints, id)
if not score and tonumber(most) > 0 and redis.call("ZCARD", hints) >= tonumber(most) then return 0 end
-- Each write gets a different score, so that a changed entry is recognised.
if is_done == "1" then redis.call("ZADD", hints, math.max(NOW, (score or 0) + 1), id) end
return 1
