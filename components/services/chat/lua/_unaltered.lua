-- Forget what was changed of a message that goes, and return how many bytes that were.
local function forget_alterations(seq)
  local bytes = redis.call("HSTRLEN", altered, seq)
  redis.call("HDEL", altered, seq)
  redis.call("ZREM", changes, seq)
  return bytes
end
