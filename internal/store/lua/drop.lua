-- Removes parked events for good, and tells the owner. Repeated, it changes nothing more.
--
-- KEYS    1 ownership hash   2 parked events   3 retry states
-- ARGV    entry IDs
-- Returns the number of events that were there
redis.call('HLEN', KEYS[1])
redis.call('HLEN', KEYS[3])
local dropped = 0
for _, id in ipairs(ARGV) do
	dropped = dropped + redis.call('HDEL', KEYS[2], id)
	redis.call('HDEL', KEYS[3], id)
end
redis.call('HINCRBY', KEYS[1], 'poke', 1)
return dropped
