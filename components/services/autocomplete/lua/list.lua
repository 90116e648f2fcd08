-- Note that a book is in the list of all, if there is one. Idempotent by nature.
-- KEYS[1] book  HASH version, count, when it was loaded, by which rules names were folded
-- ARGV[1] 1
-- Returns 1 if there is
local book = KEYS[1]
local is_listed = ARGV[1]

local is_there = redis.call("EXISTS", book)
if is_there == 1 then redis.call("HSET", book, "is_listed", is_listed) end
return is_there
