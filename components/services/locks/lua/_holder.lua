-- Whether *holder*, the token in the lock, is that of this acquisition; one that the caller chose may be others' too.
local function is_mine(holder)
  return holder == token and (asker == token or redis.call("HGET", state, "by") == asker)
end
