-- RECORD  file: position start chunk lines mark state size name
-- Return the facts about how far a file is copied, and the record. An unreadable record gives no facts.
local function known_file(fingerprint)
  local stored = redis.call("HGET", files, fingerprint) or ""
  local known = read_file(stored)
  return tonumber(known.lines) and known or {}, stored
end

-- Return a whole number as text with all of its digits.
local function digits(number) return string.format("%.0f", number) end

-- Count lines of a file that were left out.
local function count_skipped(lines)
  if lines > 0 then redis.call("HINCRBY", state, "skipped", digits(lines)) end
end
