-- Begin a load that will replace the book, and end a running one. A repeated call changes nothing.
-- KEYS    loading next_entries next_rows next_selected changed calls
-- ARGV    call
-- USES    answer
-- RETURNS 1
local HOUR = 3600000 -- milliseconds
if answer_before() then return 1 end
redis.call("UNLINK", loading, next_entries, next_rows, next_selected, changed)
redis.call("HSET", loading, "token", call)
redis.call("PEXPIRE", loading, HOUR)
return answer(1)
