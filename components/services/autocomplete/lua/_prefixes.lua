-- Where more than MANY of the selected match a prefix of up to DEEP bytes, the best of them are kept in the HASH of
-- tops: the field is the prefix, the value has their members as items, the best first, each with its score.
local MANY, DEEP = 64, 24 -- a long label has hundreds of prefixes

-- Return the first and the last member of an index that a prefix begins: no UTF-8 has the last byte.
local function range_of(prefix) return "[" .. prefix, "[" .. prefix .. "\255" end

-- Step through the places past each character of the search key of a member.
local function ends_of(member)
  return string.gmatch(string.match(member, "^[^\1]*"), "[%z\1-\127\194-\244][\128-\191]*()")
end
