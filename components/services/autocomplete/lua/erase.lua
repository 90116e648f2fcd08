-- Remove a book and everything stored about it, either always or only if it is empty and no load is running. A
-- repeated call changes nothing.
-- KEYS    book entries rows selected ranks tops loading next_entries next_rows next_selected changed
-- ARGV    which
-- RETURNS 1 if there is no such book now, else 0
if which == "vacant" then
  if redis.call("EXISTS", book) == 0 then return 1 end
  local count = tonumber(redis.call("HGET", book, "count") or 0)
  if count > 0 or redis.call("EXISTS", loading) == 1 then return 0 end
end
redis.call("UNLINK", book, entries, rows, selected, ranks, tops)
redis.call("UNLINK", loading, next_entries, next_rows, next_selected, changed)
return 1
