-- USES    time
-- Return the millisecond for a new entry, which is not before that of the *last*, unless a clock that had jumped
-- ahead by more than a minute wrote that.
local function moment_after(last) return last - NOW > 60000 and NOW or math.max(NOW, last) end
