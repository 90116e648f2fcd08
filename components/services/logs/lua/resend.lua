-- Hand out dead chunks of an aggregation again. A repeated call changes nothing.
-- KEYS    stream aggregations dead
-- ARGV    name chunks...
-- USES    aggregation held
-- RETURNS for each chunk 1 if it waits to be claimed, 0 if it was not given up
local NOBODY = "-"
local about, answer = taking_part(), {}
for at, id in ipairs(chunks) do
  local was_dead = about and redis.call("ZREM", dead, id .. " " .. name) == 1
  if was_dead then
    redis.call("XCLAIM", stream, name, NOBODY, 0, id, "IDLE", about.lease, "RETRYCOUNT", 0, "FORCE", "JUSTID")
  end
  answer[at] = (was_dead or about and held(id, NOBODY)) and 1 or 0
end
return answer
