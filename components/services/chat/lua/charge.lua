-- Charge a person for a chat that they create and for people whom they add to one, or refuse.
-- *id* is "" if no chat is created. A limit of 0 is no limit. Periods are in milliseconds.
-- KEYS    created rate
-- ARGV    id call people create_limit create_period add_limit add_period most_created
-- USES    time
-- RETURNS "ok"; "fast" and the milliseconds until there is room; "full" and the current millisecond
local YEAR = 366 * 86400000 -- milliseconds

-- Return the millisecond at which everything including this is paid for, and the milliseconds until there is room.
local function price(key, cost, limit, period)
  limit, period = tonumber(limit), tonumber(period)
  cost = math.min(cost, limit) -- a cost above the limit is accepted when nothing else is unpaid
  if cost == 0 then return { key = key, wait = 0 } end
  local paid = math.max(NOW, math.min(tonumber(redis.call("GET", key) or 0), NOW + period)) + cost * period / limit
  return { key = key, paid = paid, wait = math.ceil(paid - period - NOW) }
end

local noted, most = rate .. "/call/" .. call, tonumber(most_created)
if redis.call("EXISTS", noted) == 1 then return { "ok" } end
local is_new = id ~= "" and not redis.call("ZSCORE", created, id)
if is_new and most > 0 and redis.call("ZCARD", created) >= most then return { "full", NOW } end
local prices = {
  price(rate .. "/create", id ~= "" and 1 or 0, create_limit, create_period),
  price(rate .. "/add", tonumber(people), add_limit, add_period),
}
local wait = math.max(prices[1].wait, prices[2].wait)
if wait > 0 then return { "fast", wait } end
for _, each in ipairs(prices) do
  if each.paid then
    redis.call("SET", each.key, string.format("%.3f", each.paid), "PX", math.max(1, math.ceil(each.paid - NOW)))
  end
end
if id ~= "" and most > 0 then
  redis.call("ZADD", created, NOW, id)
  redis.call("PEXPIRE", created, YEAR)
end
redis.call("SET", noted, "1", "PX", 60000)
return { "ok" }
