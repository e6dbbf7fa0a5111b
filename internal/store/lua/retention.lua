-- What the scripts that trim need; it stands behind the prelude.

-- The consumer groups of a partition.
local function groups_of(log)
	local groups = {}
	if redis.call('EXISTS', log) == 0 then return groups end
	for i, flat in ipairs(redis.call('XINFO', 'GROUPS', log)) do groups[i] = map(flat) end
	return groups
end

-- The smallest ID behind an ID; the ID itself where there is none. As text: a double
-- cannot hold 64 bits.
local function following(id)
	local function increased(digits)
		local nines = #digits:match('9*$')
		local head = digits:sub(1, #digits - nines)
		return head:sub(1, -2) .. (tonumber(head:sub(-1)) or 0) + 1 .. ('0'):rep(nines)
	end
	local most = '18446744073709551615'
	local ms, seq = id:match('^(%d+)-?(%d*)$')
	if seq ~= most then return ms .. '-' .. increased(seq) end
	if ms ~= most then return increased(ms) .. '-0' end
	return id
end

-- The largest ID before an ID other than 0-0.
local function preceding(id)
	local function decreased(digits)
		local zeros = #digits:match('0*$')
		local head = digits:sub(1, #digits - zeros)
		return ((head:sub(1, -2) .. (tonumber(head:sub(-1)) - 1) .. ('9'):rep(zeros)):gsub('^0+(%d)', '%1'))
	end
	local ms, seq = id:match('^(%d+)-?(%d*)$')
	if seq:find('[1-9]') then return ms .. '-' .. decreased(seq) end
	return decreased(ms) .. '-18446744073709551615'
end

-- The first ID that a group still needs; what lies before it is acked. No entry is
-- read to find it: the entry may be large.
local function needs(log, group)
	if group['pending'] > 0 then
		local pending = redis.call('XPENDING', log, group['name'])
		if pending[1] > 0 then return pending[2] end -- without what was removed, on the embedded server
	end
	local last = group['last-delivered-id']
	return following(last ~= '' and last or '0-0')
end

-- The processor whose owner has a group, nil for any other group.
local function processor_of(name, id_length)
	local processor = name:sub(1, -id_length - 2)
	return is_group_of(processor, name, id_length) and processor or nil
end

-- The ID before which every consumer group has acked everything, and who needs it: a processor; or,
-- with true behind it, another user of a group: a processor that the caller does not know (yet),
-- or, named like the group, a program of another kind such as Python's runnel. Without an ID the
-- named processor has no group, or there is no group at all. A plain group named like a processor
-- does not count: it is where Python stopped. The processors are the arguments from number first
-- on.
local function acked_by_all(log, groups, id_length, first)
	local registered, needed = {}, {}
	for i = first, #ARGV do registered[ARGV[i]] = true end
	local keep, holder, foreign = nil, nil, false
	for _, group in ipairs(groups) do
		local processor = processor_of(group['name'], id_length)
		local who = processor or group['name']
		if not registered[who] then
			local id = needs(log, group)
			if not keep or before(id, keep) then keep, holder, foreign = id, who, true end
		elseif processor then
			local id = needs(log, group)
			if not needed[who] or before(id, needed[who]) then needed[who] = id end
		end
	end
	for i = first, #ARGV do
		local id = needed[ARGV[i]]
		if not id then return nil, ARGV[i], false end
		if not keep or before(id, keep) then keep, holder, foreign = id, ARGV[i], false end
	end
	return keep, holder, foreign
end

-- Removes the oldest entries, at most count and none from keep on. Returns how many it removed.
local function remove(log, keep, count)
	local removed = 0
	if count <= 0 then return 0 end
	if redis.REDIS_VERSION then -- the embedded server ignores LIMIT
		removed = redis.call('XTRIM', log, 'MINID', '~', keep, 'LIMIT', count)
	end
	if removed == count then return removed end
	-- That removes whole blocks. What is left to remove lies in the first block,
	-- so that few entries are looked at, large ones never: they have a block each.
	local oldest = redis.call('XRANGE', log, '-', '(' .. keep, 'COUNT', count - removed + 1)
	if #oldest == 0 then return removed end
	local stays = oldest[count - removed + 1]
	return removed + redis.call('XTRIM', log, 'MINID', stays and stays[1] or keep)
end
