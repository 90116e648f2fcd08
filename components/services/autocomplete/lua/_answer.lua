-- What a call was answered is kept for a minute: it asks again if the reply was lost, and must change nothing then.
local function answer_before() return redis.call("GET", calls .. ":" .. call) end

local function answer(said)
  redis.call("SET", calls .. ":" .. call, said, "PX", 60000)
  return said
end
