-- What is in a partition; behind the prelude and size.lua.

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

-- Why an entry that is not there never was, nil if it was removed: what is dropped goes with all before it, and of what is deleted by
-- hand the server knows. What was forgotten is neither, though others may have come behind it. read is how many entries
-- there were up to it, without those that were lost, or nil for unknown.
local function never_had(log, own, id, read, lost)
	local last, added = ends(log, own)
	if before(last, id) then return 'it ends with ' .. last .. ', before ' .. id end
	if not added or not read or added - redis.call('XLEN', log) >= read + lost then return nil end
	local deleted = small_enough(log) and map(redis.call('XINFO', 'STREAM', log))['max-deleted-entry-id']
	if not deleted or before(deleted, id) then return 'it has not had ' .. id end
end
