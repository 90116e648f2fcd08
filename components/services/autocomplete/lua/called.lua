-- Find the entries whose whole name has this search key. Reads only.
-- KEYS[1] book     HASH version, count, when it was loaded, by which rules names were folded
-- KEYS[2] entries  ZSET search key, \1, id: from the beginning and from each word on
-- KEYS[3] rows     HASH part of a digest of the id -> rows, each after \2
-- ARGV[1] search key
-- ARGV[2] how many
-- Returns of each, by id: \2, id, \1, label, as one text; nil if there is no such book
local book, entries, rows = KEYS[1], KEYS[2], KEYS[3]
local wanted, limit = ARGV[1], tonumber(ARGV[2])
local AT_ONCE, MOST = 250, 1000 -- members that are looked at: who only ends with this word has one as well

if redis.call("EXISTS", book) == 0 then return nil end
local first, last = "[" .. wanted .. "\1", "[" .. wanted .. "\1\255"
local answer, offset = {}, 0
while offset and offset < MOST and #answer < limit do
  local found = redis.call("ZRANGE", entries, first, last, "BYLEX", "LIMIT", offset, AT_ONCE)
  local ids, shelves = {}, {}
  for at, member in ipairs(found) do
    ids[at] = string.sub(member, #wanted + 2)
    shelves[at] = string.sub(redis.sha1hex(ids[at]), 1, 4)
  end
  for at, packed in ipairs(#found > 0 and redis.call("HMGET", rows, unpack(shelves)) or {}) do
    local from = string.find(packed, "\2" .. ids[at] .. "\1", 1, true)
    local label, key = string.match(packed, "^([^\1]+)\1([^\1\2]*)", from + #ids[at] + 2)
    if (key == "" and string.lower(label) or key) == wanted and #answer < limit then
      answer[#answer + 1] = "\2" .. ids[at] .. "\1" .. label
    end
  end
  offset = #found == AT_ONCE and offset + AT_ONCE
end
return table.concat(answer)
