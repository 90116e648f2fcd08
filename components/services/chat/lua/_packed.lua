-- Texts that are stored together, each preceded by its length: the parts of an event, and the mentions of a message.
local function packed(part) return #part .. ":" .. part end

local function unpacked(text)
  local parts, at = {}, 1
  while at <= #text do
    local colon = string.find(text, ":", at, true)
    local length = colon and tonumber(string.sub(text, at, colon - 1))
    if not length then break end -- it is damaged
    parts[#parts + 1] = string.sub(text, colon + 1, colon + length)
    at = colon + length + 1
  end
  return parts
end
