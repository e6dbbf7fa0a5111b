-- Extends the leases of an executor's partitions and checkpoints their floors.
-- Never takes a lock again that it lost.
--
-- KEYS    for each partition: partition, lock, ownership hash
-- ARGV    1 expiry in ms, then for each partition:
--         group, lock value, floor, entries read at the floor or ''
-- Returns for each partition {state, number of pending entries, lowest pending ID,
--         number of changes by operators where it is ours}
--         state 1 ours, 0 lock lost, -1 lock ours but the group is gone,
--         -2 a key holds a wrong type
local function refresh(log, lock, own, group, value, floor, read)
	local held = redis.pcall('GET', lock)
	if type(held) == 'table' then return -2, 0, '' end
	if held ~= value then return 0, 0, '' end
	redis.call('PEXPIRE', lock, ARGV[1])
	-- Also when the group is gone: then it is all that is left of the position.
	local saved = redis.pcall('HSET', own, 'floor', floor, 'read', read)
	if type(saved) == 'table' then return -2, 0, '' end
	local pending = redis.pcall('XPENDING', log, group)
	if pending.err then
		if pending.err:find('NOGROUP', 1, true) then return -1, 0, '' end
		return -2, 0, ''
	end
	return 1, pending[1], pending[2] or '', tonumber(redis.call('HGET', own, 'poke') or '') or 0
end

local out = {}
for i = 0, #KEYS / 3 - 1 do
	local k, a = i * 3, i * 4 + 1
	out[i + 1] = { refresh(KEYS[k + 1], KEYS[k + 2], KEYS[k + 3],
		ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4]) }
end
return out
