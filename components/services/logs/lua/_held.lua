-- Return what is pending of a chunk (id, holder, idle milliseconds, deliveries), or nil if *holder* does not hold it.
local function held(id, holder) return redis.call("XPENDING", stream, name, id, id, 1, holder)[1] end
