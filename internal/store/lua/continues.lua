-- Finds out whether what owners by position have read is what is there, for one that has connected anew: the server
-- may be another one, or have gone back. It stands behind the prelude and present.lua, and changes nothing.
--
-- KEYS    for each partition: partition, ownership hash
-- ARGV    for each partition: lock value, group, the last ID that was read
-- Returns for each partition 1 if it may be read on; 0 if its tenure or group is gone, or that ID is neither
--         done nor there
local out = {}
for i = 1, #KEYS / 2 do
	local log, own, value, group, last = KEYS[2 * i - 1], KEYS[2 * i], ARGV[3 * i - 2], ARGV[3 * i - 1], ARGV[3 * i]
	local saved = redis.call('HMGET', own, 'tenure', 'floor')
	out[i] = 0
	if saved[1] == value and redis.call('EXISTS', log) == 1 and find_group(log, group) then
		if not before(saved[2] or '0-0', last) then
			out[i] = 1
		elseif is_there(log, group, last, true) then
			out[i] = 1
		end
	end
end
return out
