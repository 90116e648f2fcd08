-- Return whether *holder*, the token in the lock, is this acquisition's. A token that the caller chose may be shared.
local function is_mine(holder)
  return holder == token and (asker == token or redis.call("HGET", state, "by") == asker)
end
