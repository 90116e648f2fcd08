-- Note up to where a file was read, if that is where it is copied up to. Repeated, it says the same.
-- KEYS[1] files  HASH fingerprint -> position, start and id of its last chunk, lines, mark, state, size, name
-- KEYS[2] state  HASH skipped
-- ARGV[1] fingerprint
-- ARGV[2] where its last chunk ended
-- ARGV[3] where it ends: there too, or after what was left out
-- ARGV[4] how many lines are before that
-- ARGV[5] mark of the bytes before the end
-- ARGV[6] done, damaged, or copying if there may be more
-- ARGV[7] its size as it is stored
-- ARGV[8] its name
-- Returns "finished"; "at" and the record, if the file is copied up to elsewhere
local files, state = KEYS[1], KEYS[2]
local print, after, till, lines, mark = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local how, size, name = ARGV[6], ARGV[7], ARGV[8]

local record = redis.call("HGET", files, print)
local position, start, last, known = string.match(record or "", "^(%d+) (%d+) (%S+) (%d+)")
if position ~= after and position ~= till then return { "at", record or "" } end
local skipped = lines - known -- all lines since the last chunk were left out
if skipped > 0 then redis.call("HINCRBY", state, "skipped", string.format("%.0f", skipped)) end
redis.call("HSET", files, print, table.concat({ till, start, last, lines, mark, how, size, name }, " "))
return { "finished" }
