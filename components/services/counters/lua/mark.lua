-- Set a mark at an instant, and forget the oldest ones. A call that is repeated changes nothing.
-- KEYS    marks
-- ARGV    mark at kept most
-- USES    time
-- RETURNS the microsecond of the mark
local wanted = at == "" and text(MICROSECONDS) or at -- microseconds; "" for now
redis.call("ZADD", marks, "NX", wanted, mark)
local answer = text(tonumber(redis.call("ZSCORE", marks, mark)))
redis.call("ZREMRANGEBYSCORE", marks, "-inf", text(MICROSECONDS - kept * 1000000))
redis.call("ZREMRANGEBYRANK", marks, 0, -1 - most)
redis.call("EXPIRE", marks, kept)
return answer
