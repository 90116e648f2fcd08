-- The positions of the fields of a stream entry. A damaged entry may have fewer fields.
local SENDER, CLIENT_ID, AT, ORDINAL, MENTIONS, BODY = 2, 4, 6, 8, 10, 12

local function seq_of(entry) return string.match(entry[1], "%d+") end
