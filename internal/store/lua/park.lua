-- Moves events of a tenure out of the partition, to wait for another attempt: acks them and stores
-- them with their states, all or none. Repeated at any time, it changes nothing: what is acked was
-- parked then, and may be done by now.
--
-- KEYS    1 partition   2 lock   3 parked events   4 retry states   5 ownership hash: aside
-- ARGV    1 lock value   2 group   3 the most events that may be parked, 0 for any
--         number, then for each event: entry ID, packed fields, state
-- Returns the number of events that were moved
-- Errors  FENCED when the lock does not hold the value or the group is gone
--         FULL when they would be too many
local ended = over(KEYS[1], KEYS[2], ARGV[1], ARGV[2])
if ended then return ended end
redis.call('HLEN', KEYS[5]) -- a wrong type must show before the first write
local limit, parked, more = tonumber(ARGV[3]), redis.call('HLEN', KEYS[3]), 0
for i = 4, #ARGV, 3 do
	if redis.call('HEXISTS', KEYS[3], ARGV[i]) == 0 then more = more + 1 end
	redis.call('HEXISTS', KEYS[4], ARGV[i])
end
if limit > 0 and more > 0 and parked + more > limit then
	return redis.error_reply('FULL ' .. parked .. ' events are parked, ' .. more .. ' more would be beyond ' .. ARGV[3])
end

local moved = {}
for i = 4, #ARGV, 3 do
	-- This comes first: it works when the memory of the server is full, see obtain.lua.
	if take_out(KEYS[1], ARGV[2], KEYS[5], ARGV[1], ARGV[i]) then
		redis.call('HSET', KEYS[3], ARGV[i], ARGV[i + 1])
		redis.call('HSET', KEYS[4], ARGV[i], ARGV[i + 2])
		moved[#moved + 1] = ARGV[i]
	end
end
if #moved > 0 then set_aside(KEYS[1], ARGV[2], KEYS[5], ARGV[1], moved) end
return #moved
