-- Add to the counts of a cache: the rows on the schedule or, with the suffix ":failing", the rows that fail.
local function count(member, suffix, number)
  local field = string.match(member, "^[^:]*") .. suffix
  if redis.call("HINCRBY", counts, field, number) <= 0 then redis.call("HDEL", counts, field) end
end
