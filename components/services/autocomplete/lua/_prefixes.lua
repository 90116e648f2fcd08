-- If more than MANY selected entries match a prefix of up to DEEP bytes, the HASH *tops* stores the best of them: the
-- field is the prefix, and the value has their members as items, best first, each with its score.
local MANY, DEEP = 64, 24 -- DEEP, because a long label has hundreds of prefixes

-- Return the bounds of the members of an index that begin with a prefix. The last byte never occurs in UTF-8.
local function range_of(prefix) return "[" .. prefix, "[" .. prefix .. "\255" end

-- Iterate over the end positions of the characters in the search key of a member.
local function ends_of(member)
  return string.gmatch(string.match(member, "^[^\1]*"), "[%z\1-\127\194-\244][\128-\191]*()")
end
