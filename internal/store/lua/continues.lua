-- Finds out whether what owners by position have read is what is there, for one that has connected anew: the server
-- may be another one, or have gone back. It stands behind the prelude, size.lua and present.lua, and changes nothing that stays.
--
-- KEYS    for each partition: partition, ownership hash
-- ARGV    for each partition: lock value, group, the last ID that was read, the number of entries up to it, without lost ones, or ''
-- Returns for each partition 1 if it may be read on; 0 if its tenure or group is gone, a key holds a wrong type, or
--         that ID is neither done nor there, nor was dropped
local function continues(log, own, value, group, last, read)
	local saved = redis.call('HMGET', own, 'tenure', 'floor', 'lost', 'read')
	if saved[1] ~= value or redis.call('EXISTS', log) == 0 or not find_group(log, group) then return false end
	if not before(saved[2] or '0-0', last) then return true end
	if is_there(log, group, last, true) then return true end
	-- Dropped for want of room, as commit.lua knows: nothing is left up to it, and the partition once came so far.
	local floor, upto = saved[2] or '0-0', tonumber(read)
	return #redis.call('XRANGE', log, '(' .. floor, last, 'COUNT', 1) == 0
		and not never_had(log, own, last, floor, upto and upto + (tonumber(saved[3] or '') or 0), tonumber(saved[4] or ''))
end

local out = {}
for i = 1, #KEYS / 2 do
	local fine, so = pcall(continues, KEYS[2 * i - 1], KEYS[2 * i], unpack(ARGV, 4 * i - 3, 4 * i))
	out[i] = fine and so and 1 or 0
end
return out
