-- Put a book into the list of all books if the book exists. A repeated call changes nothing.
-- KEYS    book
-- RETURNS 1 if there is such a book, else 0
local is_there = redis.call("EXISTS", book)
if is_there == 1 then redis.call("HSET", book, "is_listed", 1) end
return is_there
