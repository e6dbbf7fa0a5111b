-- Parks the event of a dead letter again, removes the dead letter, and tells the owner,
-- in one step. Repeated it changes nothing more. It stands behind the prelude.
--
-- KEYS    1 dead letters   2 parked events   3 retry states   4 ownership hash   5 partition
-- ARGV    1 ID of the dead letter   2 entry ID of the event   3 packed fields   4 state
--         5 the most events that may be parked, 0 for any number
-- Returns 1 it is parked, 0 there is no such dead letter
-- Errors  FULL when one more would be too many, PARKED when there is such an event, AHEAD when it comes again by itself, as the
--         position was set back: by position it would count twice
if #redis.call('XRANGE', KEYS[1], ARGV[1], ARGV[1]) == 0 then return 0 end
redis.call('HLEN', KEYS[4]) -- a wrong type must show before the first write
local limit, parked = tonumber(ARGV[5]), redis.call('HLEN', KEYS[3])
if redis.call('HEXISTS', KEYS[2], ARGV[2]) + redis.call('HEXISTS', KEYS[3], ARGV[2]) > 0 then
	return redis.error_reply('PARKED an event of this ID is parked')
end
local own = redis.call('HMGET', KEYS[4], 'reach', 'found', 'floor', 'aside')
if (own[1] or own[2] == 'reset') and own[3] and before(own[3], ARGV[2]) and not words(own[4] or '')[ARGV[2]]
	and #redis.call('XRANGE', KEYS[5], ARGV[2], ARGV[2]) > 0 then
	return redis.error_reply('AHEAD the event comes again: the position is ' .. own[3] .. ', before it')
end
if limit > 0 and parked >= limit then return redis.error_reply('FULL ' .. parked .. ' events are parked') end
redis.call('HSET', KEYS[2], ARGV[2], ARGV[3])
redis.call('HSET', KEYS[3], ARGV[2], ARGV[4])
redis.call('XDEL', KEYS[1], ARGV[1])
redis.call('HINCRBY', KEYS[4], 'poke', 1)
return 1
