-- Append a chunk, if it begins where the file's last one ended and there is room. Repeated, it says the same.
-- KEYS[1] stream  STREAM of descriptors
-- KEYS[2] chunk   STRING, prefix to an id: lines, compressed
-- KEYS[3] files   HASH fingerprint -> position, start and id of its last chunk, lines, mark, state, size, name
-- KEYS[4] state   HASH bytes, chunks, lines, raw, skipped, limit
-- KEYS[5] room    LIST that wakes a producer
-- KEYS[6] seen    ZSET fingerprint by millisecond
-- ARGV[1] fingerprint
-- ARGV[2] bytes in flight that are allowed
-- ARGV[3] where the file's last chunk ended
-- ARGV[4] where the lines begin: there too, or after what was left out
-- ARGV[5] where they end
-- ARGV[6] number of the first line
-- ARGV[7] how many lines
-- ARGV[8] mark of the bytes before the end
-- ARGV[9] name of the file
-- ARGV[10] the lines, compressed
-- Returns "copied" and the id; "full"; "at" and the record, if the file is copied up to elsewhere
local stream, chunk, files, state, room, seen = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local print, limit, after, start, till = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local line, lines, mark, name, payload = ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10]

local record = redis.call("HGET", files, print)
local position, last_start, last, known = string.match(record or "", "^(%d+) (%d+) (%S+) (%d+)")
if position == till and last_start == start then return { "copied", last } end
if position ~= after then return { "at", record or "" } end

redis.call("HSET", state, "limit", limit)
local used = tonumber(redis.call("HGET", state, "bytes") or 0)
if used + #payload > tonumber(limit) then return { "full" } end

local id = redis.call("XADD", stream, "*", "file", name, "start", start, "end", till, "line", line, "lines", lines)
redis.call("SET", chunk .. id, payload)
redis.call("ZADD", seen, string.match(id, "^%d+"), print)
local before = string.format("%.0f", line - 1 + lines)
redis.call("HSET", files, print, table.concat({ till, start, id, before, mark, "copying", "0", name }, " "))
redis.call("HINCRBY", state, "bytes", #payload)
redis.call("HINCRBY", state, "chunks", 1)
redis.call("HINCRBY", state, "lines", lines)
redis.call("HINCRBY", state, "raw", string.format("%.0f", till - start))
local skipped = line - 1 - known
if skipped > 0 then redis.call("HINCRBY", state, "skipped", string.format("%.0f", skipped)) end
if used + 2 * #payload <= tonumber(limit) and redis.call("LLEN", room) == 0 then redis.call("RPUSH", room, "1") end
return { "copied", id }
