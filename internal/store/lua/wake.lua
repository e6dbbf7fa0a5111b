-- For scripts that give the owner of a partition something to do at a time, in ms since 1970.

-- Wakes the owner if it sleeps for longer than that: an entry in the log, which it reads with those
-- of its other partitions. From then on it does not sleep. Returns 1 if it was woken, else 0.
local function wake(log, own, at)
	local sleeps = redis.call('HGET', own, 'sleeps')
	if not sleeps or tonumber(at) >= tonumber(sleeps) then return 0 end
	redis.call('HSET', own, 'sleeps', '0')
	redis.call('XADD', log, '*', '__wake', at)
	return 1
end
