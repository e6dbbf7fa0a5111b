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

-- Why an entry behind a floor that is not there never was, nil if it was removed. What was forgotten is not there either, though
-- others may have come behind it. What is dropped goes with all before it: no entry up to the floor is left then, and as many were
-- removed as there were; read is how many there were up to the entry, at up to the floor, nil for unknown. Of what is deleted by hand
-- the server knows.
local function never_had(log, own, id, floor, read, at)
	local last, added = ends(log, own)
	if before(last, id) then return 'it ends with ' .. last .. ', before ' .. id end
	if floor == id or not redis.REDIS_VERSION then return nil end
	local left = redis.call('XLEN', log)
	local removed = added and added - left
	local fewer = removed and read and removed < read and removed >= (at or 0) -- else the numbers are wrong
	if not fewer and (left == 0 or floor == '0-0' or trimmed_past(log, own, floor, left)) then return nil end
	local deleted = small_enough(log) and map(redis.call('XINFO', 'STREAM', log))['max-deleted-entry-id']
	if not deleted or before(deleted, id) then return 'it has not had ' .. id end
end
