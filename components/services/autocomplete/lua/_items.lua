-- A text can hold several items. Each begins with \2 and its name, which ends at the first \1.

-- Return the positions of the \2 and of the last byte of the item with this name; nil if there is none.
local function locate(items, name)
  local from, past = string.find(items, "\2" .. name .. "\1", 1, true)
  if from then return from, (string.find(items, "\2", past, true) or #items + 1) - 1 end
end

-- Return the items without the one that has this name.
local function without(items, name)
  local from, to = locate(items, name)
  return from and string.sub(items, 1, from - 1) .. string.sub(items, to + 1) or items
end
