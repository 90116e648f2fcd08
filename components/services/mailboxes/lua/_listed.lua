-- USES    time
local YEAR = 366 * 86400000 -- milliseconds

-- Add the mailbox to the list of those in use, and remove mailboxes that were not used for a year.
local function list(name)
  if redis.call("ZADD", names, "GT", "CH", DAY, name) == 1 then
    redis.call("ZREMRANGEBYSCORE", names, "-inf", DAY - 367)
    redis.call("EXPIRE", names, 368 * 86400)
  end
end
