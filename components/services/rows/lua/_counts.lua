-- Add to what is known of a cache: how many of its rows are on the schedule, or with the suffix ":failing", fail.
local function count(member, suffix, number)
  local field = string.match(member, "^[^:]*") .. suffix
  if redis.call("HINCRBY", counts, field, number) <= 0 then redis.call("HDEL", counts, field) end
end
