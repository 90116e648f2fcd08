-- Count the semaphores of a bucket, and find those that somebody waits for. Only reads.
-- Only *most* semaphores are looked at, those that were used last. The last keys are the beginnings of those of each.
-- KEYS    names queue beats
-- ARGV    most
-- USES    time waiting
-- RETURNS the number of semaphores; the name of each that is waited for, "", how many wait, and the microseconds that
--         the first has waited, in turn
local found = { redis.call("ZCARD", names) }
for _, name in ipairs(redis.call("ZREVRANGE", names, 0, most - 1)) do
  local waiting, waited = waiting_in(queue .. name, beats .. name)
  if waiting > 0 then
    found[#found + 1], found[#found + 2], found[#found + 3], found[#found + 4] = name, "", waiting, text(waited)
  end
end
return found
