-- Find the record of a file by its first bytes, or record that it is new. A repeated call returns the same.
-- KEYS    files heads seen
-- ARGV    known length name most fingerprints...
-- USES    time file
-- RETURNS fingerprint and record; nothing if there are by now heads of other lengths than *known*; or "full"
--         if the file is new, and *most* files are known already
-- The fingerprints are those of the longest head first; the last, of *length* bytes, is that of a new file.
for _, fingerprint in ipairs(fingerprints) do
  local record = redis.call("HGET", files, fingerprint)
  if record then
    redis.call("ZADD", seen, text(NOW), fingerprint)
    return { fingerprint, record }
  end
end
if redis.call("SCARD", heads) ~= tonumber(known) then return {} end
if redis.call("HLEN", files) >= tonumber(most) then return { "full" } end
local own = fingerprints[#fingerprints]
local record = write_file({
  position = 0, start = 0, chunk = "-", lines = 0, mark = "-", state = "new", size = 0, name = name,
})
redis.call("SADD", heads, length)
redis.call("HSET", files, own, record)
redis.call("ZADD", seen, text(NOW), own)
return { own, record }
