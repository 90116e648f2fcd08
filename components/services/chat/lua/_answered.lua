-- The answers to calls, for a minute: if a reply is lost, the call is sent again and gets the same answer.
local function answered(call) return redis.call("GET", calls .. "/" .. call) end

local function answer(call, said)
  redis.call("SET", calls .. "/" .. call, said, "PX", 60000)
  return said
end
