-- Return everything that is known of one task. Only reads.
-- KEYS    tasks runs errors progress result
-- ARGV    id
-- RETURNS its record, run record, errors, progress and result; false for what is not there
return {
  redis.call("HGET", tasks, id), redis.call("HGET", runs, id), redis.call("HGET", errors, id),
  redis.call("HGET", progress, id), redis.call("GET", result .. id),
}
