-- The answer to a call is kept for a minute: if the reply is lost, the call is sent again and must change nothing.
local function answer_before() return redis.call("GET", calls .. ":" .. call) end

local function answer(said)
  redis.call("SET", calls .. ":" .. call, said, "PX", 60000)
  return said
end
