-- Record how far a file was read, if it is copied up to *after*. A repeated call returns the same.
-- KEYS    files state
-- ARGV    fingerprint after till lines mark how size name
-- USES    file
-- RETURNS "finished"; or "at" and the record of the file, if it is not copied up to *after*
local known, stored = known_file(fingerprint)
if known.position ~= after and known.position ~= till then return { "at", stored } end
count_skipped(lines - known.lines) -- all lines since the last chunk were left out
redis.call("HSET", files, fingerprint, write_file({
  position = till, start = known.start, chunk = known.chunk, lines = lines,
  mark = mark, state = how, size = size, name = name,
}))
return { "finished" }
