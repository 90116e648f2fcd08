-- A text can hold several items, each after \2 and with its name before the first \1.

-- Return the places of the \2 and of the last byte of the item of this name; nil if it is not there.
local function locate(items, name)
  local from, past = string.find(items, "\2" .. name .. "\1", 1, true)
  if from then return from, (string.find(items, "\2", past, true) or #items + 1) - 1 end
end

-- Return the items without that of this name.
local function without(items, name)
  local from, to = locate(items, name)
  return from and string.sub(items, 1, from - 1) .. string.sub(items, to + 1) or items
end
