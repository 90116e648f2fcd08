-- Count the held locks of a bucket, and find those that somebody waits for. Only reads.
-- Locks at keys of the project's own are not looked for, and only *most* locks are looked at, those that end first.
-- The last keys are the beginnings of those of each lock.
-- KEYS    held lock queue beats
-- ARGV    most
-- USES    time waiting
-- RETURNS the number of held locks; the name and the token of each that is waited for, how many wait, and the
--         microseconds that the first has waited, in turn
local now = "(" .. text(NOW)
local found = { redis.call("ZCOUNT", held, now, "+inf") }
for _, key in ipairs(redis.call("ZRANGEBYSCORE", held, now, "+inf", "LIMIT", 0, most)) do
  if string.sub(key, 1, #lock) == lock then
    local name = string.sub(key, #lock + 1)
    local waiting, waited = waiting_in(queue .. name, beats .. name)
    if waiting > 0 then
      found[#found + 1], found[#found + 2] = name, redis.call("GET", key) or ""
      found[#found + 1], found[#found + 2] = waiting, text(waited)
    end
  end
end
return found
