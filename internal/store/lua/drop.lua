-- Removes parked events for good, and tells the owner. Repeated, it changes nothing more.
--
-- KEYS    1 ownership hash   2 parked events   3 retry states
-- ARGV    entry IDs
-- Returns for each event 1 if it was there, else 0
redis.call('HLEN', KEYS[1])
redis.call('HLEN', KEYS[3])
local dropped = {}
for i, id in ipairs(ARGV) do
	dropped[i] = redis.call('HDEL', KEYS[2], id)
	redis.call('HDEL', KEYS[3], id)
end
redis.call('HINCRBY', KEYS[1], 'poke', 1)
return dropped
