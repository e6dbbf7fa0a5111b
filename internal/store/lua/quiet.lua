-- The server's clock in ms where no event of a partition waits that an owner is not done with, and none is parked; else nil. Until
-- then nothing will be appended any more. With the error FENCED where another tenure has the partition. Behind it:
--
-- KEYS    1 partition   2 ownership hash: tenure, floor   3 states of parked events
-- ARGV    1 lock value
local function quiet()
	local saved = redis.call('HMGET', KEYS[2], 'tenure', 'floor')
	if saved[1] ~= ARGV[1] then return nil, redis.error_reply('FENCED the partition is not ours') end
	if #redis.call('XRANGE', KEYS[1], '(' .. saved[2], '+', 'COUNT', 1) > 0 or redis.call('HLEN', KEYS[3]) > 0 then return nil end
	local now = redis.call('TIME')
	return now[1] * 1000 + math.floor(now[2] / 1000)
end
