-- Deletes a lock that still holds the tenure's value.
--
-- KEYS    1 lock   2 ownership hash, of a partition's clean release
-- ARGV    1 lock value
-- Returns 1 deleted, 0 not held
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
-- Only by whom took it over: a lock alone says nothing of the owner before.
if KEYS[2] and redis.call('HGET', KEYS[2], 'tenure') == ARGV[1] then
	redis.call('HDEL', KEYS[2], 'open')
end
return redis.call('DEL', KEYS[1])
