-- Where a processor stands, for takeover.lua and reset.lua; it stands behind the prelude and present.lua. No entry
-- is read: XRANGE and XINFO STREAM copy entries, which may be large, several times. The embedded
-- server has to read, and its entries are small.

-- The largest ID before an ID that is not 0-0, as text: a double cannot hold 64 bits.
local function preceding(id)
	local function decreased(digits)
		local head, digit, zeros = digits:match('^(%d-)([1-9])(0*)$')
		local less = head .. (tonumber(digit) - 1) .. ('9'):rep(#zeros)
		return less:match('^0*(%d+)$')
	end
	local ms, seq = id:match('^(%d+)-(%d+)$')
	if seq ~= '0' then return ms .. '-' .. decreased(seq) end
	return decreased(ms) .. '-18446744073709551615'
end

-- The IDs of at most 1000 pending entries, and which of them are there. Trimming begins with the
-- oldest: if the first one is there, all are, but for those deleted by hand, which count as lost
-- when all is read.
local function pending_in(log, group, oldest, foreign)
	local ids = {}
	if redis.REDIS_VERSION then
		local there = present(log, group, { oldest }, foreign)
		if there[oldest] then return { oldest }, there end
		ids[1] = oldest -- which is not pending any more
	end
	for _, one in ipairs(redis.call('XPENDING', log, group, '-', '+', 1000)) do ids[#ids + 1] = one[1] end
	if redis.REDIS_VERSION then return ids, present(log, group, ids) end
	local there = {}
	for _, entry in ipairs(ids[1] and redis.call('XRANGE', log, ids[1], '+') or {}) do there[entry[1]] = true end
	return ids, there
end

-- The position from which a group would be read on without skipping anything, the number
-- of entries up to there or nil, how many pending ones were removed, and the first that
-- was not. aside are the IDs of those that were taken out.
local function position(log, group, aside, foreign)
	local last, read, name = group['last-delivered-id'], tonumber(group['entries-read'] or ''), group['name']
	if group['pending'] == 0 and redis.REDIS_VERSION then return last, read, 0 end
	local all = redis.call('XPENDING', log, name)
	local pending, there = pending_in(log, name, all[2], foreign)
	if #pending == 0 then return last, read, 0 end
	-- Set back by hand: what is pending behind that is no part of what was read since.
	if all[3] and before(last, all[3]) then read = nil end
	local floor, first, missing, behind, more = preceding(pending[1]), nil, 0, group['pending'], {}
	for _, id in ipairs(pending) do
		if there[id] then first = first or id else missing = missing + 1 end
	end
	for _, id in ipairs(aside) do
		if before(floor, id) and not before(last, id) then more[#more + 1] = id end
	end
	for _ in pairs(present(log, name, more, foreign)) do behind = behind + 1 end
	return floor, read and math.max(read - behind + missing, 0), missing, first
end

-- How many of these, which were set aside behind a floor by position, are not there any more: they were read.
local function removed_of(log, group, floor, aside)
	local behind, there = {}, {}
	for _, id in ipairs(aside) do
		if before(floor, id) then behind[#behind + 1] = id end
	end
	if redis.REDIS_VERSION then there = present(log, group['name'], behind) end
	local n = #behind
	for _ in pairs(there) do n = n - 1 end
	return redis.REDIS_VERSION and n or 0
end

-- The first entry behind a floor that was not set aside, and the last of so many; nil for none. Entries that came later
-- than until, in ms, do not count. Of large entries about a megabyte is read, at least one: then all that there are may
-- be among so many.
local function begun(log, floor, most, till, aside)
	local first, last, after, moved = nil, nil, floor, words(aside)
	local clock = redis.call('TIME')
	local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
	local left = math.min(most, math.max(readable(log), 1))
	local whole = left == most
	for page = 1, math.huge do
		if left == 0 then break end
		local entries = redis.call('XRANGE', log, '(' .. after, '+', 'COUNT', page == 1 and 1 or math.min(left, 100))
		if #entries == 0 then return first, last end
		for _, entry in ipairs(entries) do
			after = entry[1]
			local ms = tonumber(after:match('^%d+'))
			if ms > till and ms <= now then return first, last end -- an ID ahead of the clock does not tell when it came
			last = after
			if not first and not moved[after] then first = after end
		end
		left = left - #entries
	end
	if not whole then
		local newest = ends(log, 'begun')
		if last and before(last, newest) then last = newest end
	end
	return first, last
end

-- What position returns, if the owner before released the partition and stored it. What was dropped
-- since, to make room, counts as read. The embedded server, which does not count appends, would
-- miss that pending entries were removed.
local function released(log, group, saved)
	local tenure, lost = (saved.clean or ''):match('^(.*) (%d+)$')
	local read = tonumber(saved.read or '')
	if not redis.REDIS_VERSION or not tenure or tenure ~= saved.tenure or not saved.floor or not read then return end
	local last, oldest = group['last-delivered-id'], nil
	if group['pending'] > 0 then
		oldest = redis.call('XPENDING', log, group['name'])[2]
		if not before(saved.floor, oldest) or before(last, saved.floor) then return end
	elseif last ~= saved.floor then
		return
	end
	return saved.floor, read + (tonumber(saved.lost or '') or 0) - lost, oldest
end

-- What Redis has forgotten of a partition, as partition_forgotten.go reads it: what was there
-- behind one ID, up to another one. epoch is that of the owner that reports it.
local function forgotten_text(what, from, to, epoch)
	local now = redis.call('TIME')
	return string.format('{"v":1,"what":"%s","from":"%s","to":"%s","epoch":%.0f,"at":%.0f}',
		what, from, to, epoch, now[1] * 1000 + math.floor(now[2] / 1000))
end

-- How many entries lie behind one ID, up to another one; nil if they are many, or large.
local function entries_between(log, after, to)
	if not small_enough(log) then return nil end
	local n, bytes, page = 0, 0, 1
	while n < 1000 and bytes < 1000000 do
		local entries = redis.call('XRANGE', log, '(' .. after, to, 'COUNT', page)
		if #entries == 0 then return n end
		local before_these = bytes
		for _, entry in ipairs(entries) do
			for _, text in ipairs(entry[2]) do bytes = bytes + #text end
		end
		n, after = n + #entries, entries[#entries][1]
		page = bytes - before_these < 100000 and 10 or 1
	end
end

local known
local function facts_of(log, own)
	if not known then
		local last, added = ends(log, own)
		known = { last = last, added = added }
	end
	return known
end
