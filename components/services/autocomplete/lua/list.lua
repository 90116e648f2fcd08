-- Note that a book is in the list of all, if there is one. A repeated call changes nothing.
-- KEYS    book
-- RETURNS 1 if there is such a book, else 0
local is_there = redis.call("EXISTS", book)
if is_there == 1 then redis.call("HSET", book, "is_listed", 1) end
return is_there
