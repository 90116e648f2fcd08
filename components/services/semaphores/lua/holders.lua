-- List a page of the holders of permits, the earliest grant first. Only reads.
-- KEYS    holders since
-- ARGV    offset limit
-- USES    time
-- RETURNS for each: permit, microsecond of its grant, microseconds left (none or less if its lease has run out)
local answer = {}
local page = redis.call("ZRANGE", since, offset, offset + limit - 1, "WITHSCORES")
for at = 1, #page, 2 do
  local ends_at = tonumber(redis.call("ZSCORE", holders, page[at]) or MICROSECONDS)
  answer[#answer + 1] = { page[at], string.format("%.0f", page[at + 1]), ends_at - MICROSECONDS }
end
return answer
