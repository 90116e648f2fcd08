-- Return the digest by which a message is recognised when it is sent again.
local function digest_of(sender, client_id)
  return string.sub(redis.sha1hex(sender .. "\0" .. client_id), 1, 16)
end
