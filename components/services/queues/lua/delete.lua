-- Delete tasks that do not run, with all that is known of them. Repeated, it answers the same.
-- KEYS[1] tasks     HASH id -> record
-- KEYS[2] runs      HASH id -> run record
-- KEYS[3] errors    HASH id -> JSON
-- KEYS[4] progress  HASH id -> JSON
-- KEYS[5] uniques   HASH unique key -> id
-- KEYS[6] awaited   SET of ids whose end somebody waits for
-- KEYS[7] place     ZSET of ids, of the state that they are to be in
-- KEYS[8] result    prefix of the result STRINGs, an id is appended
-- KEYS[9] ended     prefix of the LISTs that tell who waits, an id is appended
-- ARGV[1..] ids
-- Returns how many of them are not there now
local tasks, runs, errors, progress, uniques = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local awaited, place, result, ended = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local TOLD = 60000 -- milliseconds, as in advance.lua

local function forget(id)
  local unique = string.match(redis.call("HGET", tasks, id) or "", "^1 %d+ %S+ %S+ %S+ %S+ (%S+)") or "-"
  if redis.call("HGET", uniques, unique) == id then redis.call("HDEL", uniques, unique) end
  for _, hash in ipairs({ tasks, runs, errors, progress }) do redis.call("HDEL", hash, id) end
  redis.call("DEL", result .. id)
  if redis.call("SREM", awaited, id) == 1 then
    redis.call("RPUSH", ended .. id, "1")
    redis.call("PEXPIRE", ended .. id, TOLD)
  end
end

local gone = 0
for _, id in ipairs(ARGV) do
  if redis.call("ZREM", place, id) == 1 then forget(id) end
  if redis.call("HEXISTS", tasks, id) + redis.call("EXISTS", result .. id) == 0 then gone = gone + 1 end
end
return gone
