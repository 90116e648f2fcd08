-- A member: the letter of their role; their number in the order of joining; when they joined; the last seq that they
-- may not see; how many messages there are up to their reading position; the millisecond at which their mute ends, 0
-- for no mute, -1 for no end; the call that added them; 0 until they send or react to something in this membership,
-- then 1, and "" for members of earlier releases.
-- RECORD  member: role number joined_at hidden read_n muted_until call has_written
local RANK = { o = 3, m = 2, u = 1 }

local function member_of(person)
  local found = redis.call("HGET", members, person)
  return found and read_member(found)
end

-- Return the rank of the acting person: 4 for the system, which is ""; nil for people who are not in the chat.
local function rank_of(by)
  if by == "" then return 4 end
  local actor = member_of(by)
  return actor and RANK[actor.role]
end
