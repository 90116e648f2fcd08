-- USES    gone
-- Records of dropped messages: the ids of the last 1,000, kept for a month.
local function note_dropped(id, sender)
  redis.call("ZADD", dropped, id, id)
  remember_sender(id, sender)
end

local function bound_dropped()
  redis.call("ZREMRANGEBYRANK", dropped, 0, -1001)
  redis.call("PEXPIRE", dropped, 30 * 86400000)
end
