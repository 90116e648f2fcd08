-- Discard dead chunks of an aggregation without counting them. A repeated call changes nothing.
-- KEYS    stream chunk counted aggregations state room dead
-- ARGV    name chunks...
-- USES    needed room
-- RETURNS how many
local about, discarded = taking_part(), 0
if not about then return 0 end
local numbers = all_numbers()
for _, id in ipairs(chunks) do
  if redis.call("ZREM", dead, id .. " " .. name) == 1 then
    be_done(id, about.number, numbers)
    discarded = discarded + 1
  end
end
if discarded > 0 then wake_producer() end
return discarded
