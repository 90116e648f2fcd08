-- Return the digest by which a message is recognised when it is sent again.
local function digest_of(sender, client_id)
  return string.sub(redis.sha1hex(sender .. "\0" .. client_id), 1, 16)
end

-- Return a digest of what a message says, which its tombstone keeps.
local function content_of(body, reply_to) return string.sub(redis.sha1hex(reply_to .. "\0" .. body), 1, 16) end
