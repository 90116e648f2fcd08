-- USES    halves
-- Return the last seq after *cut* that was sent no later than *before*, and its ordinal; if there is none, *cut* and
-- *base*.
local function aged(stream, cut, base, last, before)
  local function is_too_old(fields)
    if (tonumber(fields[AT]) or 0) > before then return false end
    base = tonumber(fields[ORDINAL]) or base
    return true
  end
  local seq = last_fitting(stream, cut, last + 1, is_too_old)
  return seq, base
end
