-- The result of one call of many: how many entries were removed, and the seq at which to continue; 0 at the end.
-- USES    answered
-- RECORD  portion: gone on
local function answered_portion(call)
  local said = answered(call)
  local found = said and read_portion(said)
  return found and { tonumber(found.gone), tonumber(found.on) }
end

local function answer_portion(call, gone, on)
  answer(call, write_portion({ gone = gone, on = on }))
  return { gone, on }
end
