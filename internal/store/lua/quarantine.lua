-- Stores that a partition is quarantined, or what halted its worker. Repeated, it changes nothing.
--
-- KEYS    1 lock   2 ownership hash
-- ARGV    1 lock value   2 what is known of it   3 'quarantine' or 'halt'
-- Returns 1
-- Errors  FENCED when the lock does not hold the value
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
	return redis.error_reply('FENCED the partition is not ours')
end
redis.call('PEXPIRE', KEYS[1], 1, 'GT') -- see obtain.lua
redis.call('HSET', KEYS[2], ARGV[3], ARGV[2])
return 1
