-- USES    time claim
-- ARGV has the lease in microseconds.
local LONGEST, KEPT = 300000000, 60000 -- microseconds of a lease that grows; milliseconds, beyond twice the lease

-- Return the length of a claim. A loader whose lease was too short must not lose it again and again: so the next
-- claim of a row that was not loaded is twice as long as the one *before*.
local function length_after(before)
  local since, ends = tonumber(before.since), tonumber(before.ends)
  return math.max(tonumber(lease), since and ends and math.min(LONGEST, 2 * (ends - since)) or 0)
end

-- Return what is written for a claim of that length: its text, for how long, and its end. Most claims of a call are
-- alike: so that is made once for each length.
local BEGUN, claims = text(MICROSECONDS), {}
local function claim_for(length)
  if not claims[length] then
    local ends = text(MICROSECONDS + length)
    local written = write_claim({ since = BEGUN, ends = ends, owner = token })
    claims[length] = { text = written, kept = text(math.ceil(2 * length / 1000) + KEPT), ends = ends }
  end
  return claims[length]
end
