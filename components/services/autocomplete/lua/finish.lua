-- End a load: replace the book by the loaded entries, in one step. A repeated call returns the same.
-- KEYS    book entries rows selected tops loading next_entries next_rows next_selected changed calls
-- ARGV    token folding call
-- USES    time answer version
-- RETURNS how many entries the book has now; or -1 if another load has begun
local before = answer_before()
if before then return tonumber(before) end
if redis.call("HGET", loading, "token") ~= token then return -1 end

local count = tonumber(redis.call("HGET", loading, "count") or 0)
redis.call("UNLINK", entries, rows, selected, tops, loading, changed)
for from, to in pairs({ [next_entries] = entries, [next_rows] = rows, [next_selected] = selected }) do
  if redis.call("EXISTS", from) == 1 then
    redis.call("RENAME", from, to)
    redis.call("PERSIST", to)
  end
end
redis.call("HSET", book, "version", next_version(), "count", count, "folding", folding)
redis.call("HSET", book, "loaded_at", text(MICROSECONDS))
return answer(count)
