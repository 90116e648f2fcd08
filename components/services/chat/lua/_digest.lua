-- Return what is remembered of a message, so that it is recognised when it is sent again.
local function digest_of(sender, client_id)
  return string.sub(redis.sha1hex(sender .. "\0" .. client_id), 1, 16)
end
