-- Removes a parked event that is done; its group may be gone. Repeated, it changes nothing.
--
-- KEYS    1 lock   2 parked events   3 retry states
-- ARGV    1 lock value   2 entry ID
-- Returns 1 removed, 0 it was not there
-- Errors  FENCED when the lock does not hold the value
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
	return redis.error_reply('FENCED the partition is not ours')
end
local there = redis.call('HDEL', KEYS[3], ARGV[2])
redis.call('HDEL', KEYS[2], ARGV[2])
return there
