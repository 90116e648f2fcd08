-- Append a chunk if it begins where its file's last one ended and there is room. A repeated call returns the same.
-- KEYS    stream chunk files state room seen
-- ARGV    fingerprint limit after start till line lines mark name payload
-- USES    file room
-- RETURNS "copied" and the id of the chunk; "full"; or "at" and the record of the file, if it is not copied up to
--         *after*, where its last chunk ended. The chunk begins there, or at *start* if lines between were left out
local known, stored = known_file(fingerprint)
if known.position == till and known.start == start then return { "copied", known.chunk } end
if known.position ~= after then return { "at", stored } end

redis.call("HSET", state, "limit", limit)
limit = tonumber(limit)
local used = tonumber(redis.call("HGET", state, "bytes") or 0)
if used + #payload > limit then return { "full" } end

local id = redis.call("XADD", stream, "*", "file", name, "start", start, "end", till, "line", line, "lines", lines)
redis.call("SET", chunk .. id, payload)
redis.call("ZADD", seen, string.match(id, "^%d+"), fingerprint)
redis.call("HSET", files, fingerprint, write_file({
  position = till, start = start, chunk = id, lines = digits(line - 1 + lines),
  mark = mark, state = "copying", size = "0", name = name,
}))
redis.call("HINCRBY", state, "bytes", #payload)
redis.call("HINCRBY", state, "chunks", 1)
redis.call("HINCRBY", state, "lines", lines)
redis.call("HINCRBY", state, "raw", digits(till - start))
count_skipped(line - 1 - known.lines)
if used + 2 * #payload <= limit then wake_producer() end
return { "copied", id }
