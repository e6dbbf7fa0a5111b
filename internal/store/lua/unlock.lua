-- Deletes a lock that still holds the tenure's value.
--
-- KEYS    1 lock   2 ownership hash, of a partition's clean release: lost, given
-- ARGV    1 lock value   2 the last entry that this owner or one before may have begun, '' or none where the group tells
--         3 the floor of that, or none   4 entries read at the floor
-- Returns 1 deleted, 0 not held
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
-- Only by an owner that took it over: a lock alone says nothing of the owner before.
local known = KEYS[2] and redis.call('HMGET', KEYS[2], 'tenure', 'lost')
if known and known[1] == ARGV[1] then
	local lost, stored = tonumber(known[2] or '') or 0, nil
	if ARGV[3] then -- where memory is full, the group tells the position all the same
		stored = redis.pcall('HSET', KEYS[2], 'open', '', 'floor', ARGV[3], 'read', string.format('%.0f', ARGV[4] + lost),
			'clean', ARGV[1] .. ' ' .. string.format('%.0f', lost))
	end
	if type(stored) ~= 'number' then redis.call('HDEL', KEYS[2], 'open') end
end
local begun = known and (known[1] or ARGV[1]) == ARGV[1] and ARGV[2] or ''
if begun ~= '' then redis.pcall('HSET', KEYS[2], 'given', begun) end
return redis.call('DEL', KEYS[1])
