-- Return why tasks have died, without their arguments. Only reads.
-- The key of dead tasks is the beginning of those of each queue.
-- KEYS    tasks runs errors dead
-- ARGV    given...
-- RETURNS for each task its name, 1 if it is sensitive, the state of its run record, and the class and the end of the
--         traceback of its latest error; texts are in JSON, and "" if they cannot be read. False for a task that is
--         not dead any more. Fewer than given if what was read is large
-- *given* has the queue and the id of each task.
local BYTES, TAIL = 2097152, 4000 -- bytes that one call reads: a few milliseconds; bytes of a traceback
local START, BETWEEN = '{"v": 1, "errors": [["', '"], ["'
local answer, bytes = {}, 0

-- Return the class and the traceback of the last error of a document as write_errors() writes it. In JSON, a text has
-- no quotation mark without a backslash before it, so that no text holds what separates the errors. Plain texts are
-- found far faster than patterns.
local function latest(document)
  if string.sub(document, 1, #START) ~= START then return "", "" end
  local begins, following = 1 + #START, string.find(document, BETWEEN, 1, true)
  while following do
    begins = following + #BETWEEN
    following = string.find(document, BETWEEN, begins, true)
  end
  local class_ends = string.find(document, '", "', begins, true)
  if not class_ends then return "", "" end
  local text_begins = class_ends + 4
  local ends = string.find(document, '"]]', text_begins, true)
  while ends and string.sub(document, ends - 1, ends - 1) == "\\" do
    ends = string.find(document, '"]]', ends + 1, true)
  end
  local last = ends and ends - 1 or #document
  return string.sub(document, begins, class_ends - 1),
    string.sub(document, math.max(text_begins, last - TAIL + 1), last)
end

for at = 1, #given, 2 do
  local queue, id = given[at], given[at + 1]
  if redis.call("ZSCORE", dead .. queue, id) then
    local record, document = redis.call("HGET", tasks, id) or "", redis.call("HGET", errors, id) or ""
    local class, traceback = latest(document)
    local name = string.match(record, '\n{"task":"([^"]*)"') or ""
    local is_sensitive = string.find(record, '"sensitive":true', 1, true) and 1 or 0
    local state = string.match(redis.call("HGET", runs, id) or "", "^1 (%S+)") or ""
    answer[#answer + 1] = { name, is_sensitive, state, class, traceback }
    bytes = bytes + #record + #document
    if bytes > BYTES then break end
  else
    answer[#answer + 1] = false
  end
end
return answer
