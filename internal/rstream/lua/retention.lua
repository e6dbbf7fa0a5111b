-- What the scripts that trim need; it stands behind the prelude.

-- The consumer groups of a partition.
local function groups_of(log)
	local groups = {}
	if redis.call('EXISTS', log) == 0 then return groups end
	for i, flat in ipairs(redis.call('XINFO', 'GROUPS', log)) do groups[i] = map(flat) end
	return groups
end

-- The first ID that a group still needs; what lies before it is acked.
local function needs(log, group)
	local pending = redis.call('XPENDING', log, group['name'])
	if pending[1] > 0 then return pending[2] end
	local last = group['last-delivered-id']
	if last == '' then last = '0-0' end
	local following = redis.call('XRANGE', log, '(' .. last, '+', 'COUNT', 1)
	if following[1] then return following[1][1] end
	return string.format('%.0f-0', last:match('^%d+') + 1) -- all of them are acked
end

-- The ID before which every processor has acked everything, and the processor
-- that needs it. Without an ID the processor has no group. The arguments from the
-- one with this number on are the processors.
local function acked_by_all(log, groups, id_length, first)
	local keep, holder
	for i = first, #ARGV do
		local registered = false
		for _, group in ipairs(groups) do
			if is_group_of(ARGV[i], group['name'], id_length) then
				registered = true
				local id = needs(log, group)
				if not keep or before(id, keep) then keep, holder = id, ARGV[i] end
			end
		end
		if not registered then return nil, ARGV[i] end
	end
	return keep, holder
end

-- Removes the oldest entries, at most so many and none from the ID keep on.
-- Returns how many that were.
local function remove(log, keep, count)
	local removed = 0
	if count <= 0 then return 0 end
	if map(redis.call('XINFO', 'STREAM', log))['entries-added'] then -- the embedded server ignores LIMIT
		removed = redis.call('XTRIM', log, 'MINID', '~', keep, 'LIMIT', count)
	end
	-- That removes whole blocks. What is left to remove lies in the first block,
	-- so that few entries are looked at, large ones never.
	local oldest = redis.call('XRANGE', log, '-', '(' .. keep, 'COUNT', count - removed + 1)
	if #oldest == 0 or count == removed then return removed end
	local stays = oldest[count - removed + 1]
	return removed + redis.call('XTRIM', log, 'MINID', stays and stays[1] or keep)
end
