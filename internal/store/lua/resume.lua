-- Ends a quarantine, the one that the caller has seen and no later one, and tells
-- the owner. Repeated it changes nothing more.
--
-- KEYS    1 ownership hash
-- ARGV    1 the quarantine as it is stored   2 event or end of a row to pass over, '' for none
-- Returns 1 ended, now or before, 0 another one is stored, or something else is
--         passed over
local stored = redis.call('HGET', KEYS[1], 'quarantine')
if not stored then
	return (ARGV[2] == '' or redis.call('HGET', KEYS[1], 'skip') == ARGV[2]) and 1 or 0
end
if stored ~= ARGV[1] then return 0 end
redis.call('HDEL', KEYS[1], 'quarantine')
if ARGV[2] ~= '' then redis.call('HSET', KEYS[1], 'skip', ARGV[2]) end
redis.call('HINCRBY', KEYS[1], 'poke', 1)
return 1
