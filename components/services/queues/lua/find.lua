-- Return everything stored about one task. Only reads.
-- KEYS    tasks runs errors progress result
-- ARGV    id
-- RETURNS its record, run record, errors, progress and result; false for each that is missing
return {
  redis.call("HGET", tasks, id), redis.call("HGET", runs, id), redis.call("HGET", errors, id),
  redis.call("HGET", progress, id), redis.call("GET", result .. id),
}
