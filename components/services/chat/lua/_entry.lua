-- The positions of the fields of a stream entry. Only a reply has the last. A damaged entry may have
-- fewer.
local SENDER, CLIENT_ID, AT, ORDINAL, MENTIONS, BODY, REPLY = 2, 4, 6, 8, 10, 12, 14

local function seq_of(entry) return string.match(entry[1], "%d+") end
