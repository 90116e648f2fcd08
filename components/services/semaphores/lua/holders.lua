-- List a page of those who hold a permit, by when it was granted. Reads only.
-- KEYS[1] holders  ZSET permit by the microsecond its lease ends
-- KEYS[2] since    ZSET permit by the microsecond it was granted
-- ARGV[1] how many to pass over
-- ARGV[2] how many to list
-- Returns for each: permit, microsecond of its grant, microseconds left (none or less: its lease has run out)
local holders, since = KEYS[1], KEYS[2]
local offset, limit = tonumber(ARGV[1]), tonumber(ARGV[2])

local time = redis.call("TIME")
local now = time[1] * 1000000 + time[2]

local answer = {}
local page = redis.call("ZRANGE", since, offset, offset + limit - 1, "WITHSCORES")
for at = 1, #page, 2 do
  local left = tonumber(redis.call("ZSCORE", holders, page[at]) or now) - now
  answer[#answer + 1] = { page[at], string.format("%.0f", page[at + 1]), left }
end
return answer
