-- RECORD  claim: since ends owner
-- A load: the microseconds of its beginning and of the end of its lease, and the token of who loads.
local function claim_of(member) return read_claim(redis.call("GET", claim .. ":" .. member) or "") end
