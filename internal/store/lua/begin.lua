-- Stores that an owner begins the event at which an earlier owner may have ended: if this one ends,
-- too, it was at that event. Repeated, it changes nothing more.
--
-- KEYS    1 lock   2 ownership hash
-- ARGV    1 lock value   2 entry ID, '' for none: what was counted of it is forgotten
-- Returns 1
-- Errors  FENCED when the lock does not hold the value
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
	return redis.error_reply('FENCED the partition is not ours')
end
redis.call('PEXPIRE', KEYS[1], 1, 'GT') -- see obtain.lua
if ARGV[2] == '' then
	redis.call('HDEL', KEYS[2], 'begun', 'deaths')
else
	redis.call('HSET', KEYS[2], 'begun', ARGV[2])
end
return 1
