-- RECORD  claim: since ends owner
-- A load: the microseconds of its beginning and of the end of its lease, and the token of the loader.
local function claim_of(member) return read_claim(redis.call("GET", claim .. ":" .. member) or "") end

-- Most claims of a call are alike, so each distinct text is parsed only once.
local known_claims = {}
local function claim_in(text)
  known_claims[text] = known_claims[text] or read_claim(text)
  return known_claims[text]
end
