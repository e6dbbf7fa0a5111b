-- Deletes a lock that still holds the tenure's value.
--
-- KEYS    1 lock
-- ARGV    1 lock value
-- Returns 1 deleted, 0 not held
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
