-- Return whether *holder*, the token in the lock, belongs to this acquisition. Acquisitions may share a token that
-- the caller chose.
local function is_mine(holder)
  return holder == token and (asker == token or redis.call("HGET", state, "by") == asker)
end
