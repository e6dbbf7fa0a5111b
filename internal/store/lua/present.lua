-- What is in a partition; behind the prelude.

-- Which of these entries are in a partition, as a table by ID. They are pending in a group, or are
-- behind what is. XCLAIM tells, but changes what is pending: for a foreign group, or without the
-- right to it, all of them seem to be there.
local function present(log, group, ids, foreign)
	local there = {}
	for i = 1, #ids, 500 do
		local some = { unpack(ids, i, math.min(i + 499, #ids)) }
		local args = { log, group, 'runnel', 0, unpack(some) }
		args[#args + 1], args[#args + 2] = 'FORCE', 'JUSTID'
		local found = foreign and some or redis.pcall('XCLAIM', unpack(args))
		for _, id in ipairs(found.err and some or found) do there[id] = true end
	end
	return there
end

-- Whether an entry is in a partition, for a script of its owner by position. A large one is not read.
local function is_there(log, group, id, large)
	if not large or not redis.REDIS_VERSION then return #redis.call('XRANGE', log, id, id) == 1 end
	if not present(log, group, { id })[id] then return false end
	redis.call('XACK', log, group, id) -- it is pending now
	return true
end
