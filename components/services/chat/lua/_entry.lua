-- Where the fields of an entry of the stream are. A damaged entry may have fewer.
local SENDER, CLIENT_ID, AT, ORDINAL, MENTIONS, BODY = 2, 4, 6, 8, 10, 12

local function seq_of(entry) return string.match(entry[1], "%d+") end
