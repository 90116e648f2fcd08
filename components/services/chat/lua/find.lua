-- Find the chats of a bucket whose id or title contains a text. Only reads.
-- Found are the chat *exact*, if it is there, and some of the *most* that somebody wrote in last. Capital letters of
-- ASCII count as small ones, as in *wanted*.
-- The last key is the beginning of that of each chat.
-- KEYS    names chat
-- ARGV    wanted exact most limit
-- RETURNS id and title of each, in turn; at most *limit* and one
local found, number = {}, 0
local function add(id, title)
  number = number + 1
  found[#found + 1], found[#found + 2] = id, title or ""
end
if redis.call("ZSCORE", names, exact) then add(exact, redis.call("HGET", chat .. exact, "title")) end
for _, id in ipairs(redis.call("ZREVRANGE", names, 0, most - 1)) do
  if number > tonumber(limit) then break end
  local title = redis.call("HGET", chat .. id, "title")
  if id ~= exact and string.find(string.lower(id .. "\n" .. (title or "")), wanted, 1, true) then add(id, title) end
end
return found
