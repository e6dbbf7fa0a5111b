-- Extends the leases of an executor's partitions, stores their floors as checkpoints, and counts
-- entries that were removed before they were delivered. Never takes a lost lock again. Of a partition that
-- is read by position it stores when the owner was there and how much it may begin, as commit.lua alone stores the
-- floor.
--
-- KEYS    for each partition: partition, lock, ownership hash
-- ARGV    1 expiry in ms, 2 '1' if no read of an owner by position is under way, then for each partition:
--         group, lock value, floor, entries read at the floor or '', last ID that
--         the owner was given or '' where nothing is to be counted, entries read up to
--         that or '', how many entries behind the floor an owner by position may begin or ''.
--         What was lost is not among the entries read
-- Returns a line for each partition, with a space between the words and "\n" at its
--         end: state, number of pending entries, lowest pending ID or -, and where it
--         is ours: number of changes by operators, number of entries lost, 1 if these
--         were counted, 2 if some may be lost and no read must be under way to tell, entries read up to the last ID as
--         they are known now or -1, the floor that was stored before or -.
--         (Thousands of small replies would cost more than all else.)
--         state 1 ours, 0 lock lost, -1 lock ours but the group is gone or of another tenure,
--         -2 a key holds a wrong type

-- Whether nothing is left behind an ID. If the newest of large entries were deleted and older ones
-- are left, that shows once another one was delivered.
local function is_last(log, own, at)
	if redis.call('XLEN', log) == 0 then return true end
	if small_enough(log) then return #redis.call('XRANGE', log, '(' .. at, '+', 'COUNT', 1) == 0 end
	return ends(log, own) == at
end

-- What was lost behind the position counts as read, as for room.lua: else a takeover that finds the same position counts it again.
local function passed(log, own, info, gap)
	if info['entries-read'] then
		redis.call('XGROUP', 'SETID', log, info['name'], info['last-delivered-id'], 'ENTRIESREAD', string.format('%.0f', info['entries-read'] + gap))
	end
	if tonumber(redis.call('HGET', own, 'read') or '') then redis.call('HINCRBY', own, 'read', gap) end
end

-- A read by position leaves no trace: what one that is under way brings may be removed before this script is executed, and
-- is not lost.
local still = ARGV[2] == '1'

-- Adds to what was lost what was dropped in front of all that is left, behind an ID: not all may ever be read.
local function dropped(log, own, info, at, read, lost)
	local left = redis.call('XLEN', log)
	if not redis.REDIS_VERSION or not trimmed_past(log, own, at, left) then return lost, 0 end
	local gap = (select(2, ends(log, own)) or 0) - left - lost - read
	if gap <= 0 then return lost, 0 end
	if not still then return lost, 2 end
	passed(log, own, info, gap)
	return redis.call('HINCRBY', own, 'lost', gap), 0
end

-- Every entry ever appended was either delivered to the processor or lost, which shows when nothing
-- is left to deliver. Repeated, it finds nothing more.
local function count(log, own, group, at, read, lost, by_position)
	local info = find_group(log, group)
	if not info then return lost, 0, -1 end
	local delivered, lag, added = tonumber(info['entries-read'] or ''), tonumber(info['lag'] or ''), nil
	local left = by_position and redis.call('XLEN', log)
	if by_position then
		added = appended(info, left)
		if added and added == lost + (read or -1) then return lost, 1, read end
	elseif info['last-delivered-id'] ~= at then
		return lost, 0, -1 -- more is on its way
	end
	if left ~= 0 and (by_position or not (delivered and lag == 0)) and not is_last(log, own, at) then
		local counted = 0
		if by_position and read then lost, counted = dropped(log, own, info, at, read, lost) end
		return lost, counted, -1
	end
	-- Redis 8 tells no lag of a stream without entries, whatever was removed from it unread.
	if not by_position and delivered and lag and (lag > 0 or redis.call('XLEN', log) > 0) then
		added = delivered + lag
	end
	added = added or select(2, ends(log, own))
	if not added then return lost, 1, -1 end -- the embedded server does not count
	local gap = read and added - lost - read or 0
	if gap > 0 and by_position and not still then return lost, 2, -1 end
	if gap > 0 then
		redis.call('HINCRBY', own, 'lost', gap)
		lost = lost + gap
		if info['last-delivered-id'] ~= at then passed(log, own, info, gap) end
	end
	-- With a lag though nothing is behind: by its append-only file, or as a replica, the
	-- server did not count what the group read; with less than none, a takeover counted
	-- too much, see position.lua.
	if info['last-delivered-id'] == at and (gap > 0 or delivered and lag and lag ~= 0) then
		redis.call('XGROUP', 'SETID', log, group, at, 'ENTRIESREAD', string.format('%.0f', added))
	end
	return lost, 1, added - lost
end

local clock = redis.call('TIME')
local now = string.format('%.0f', clock[1] * 1000 + math.floor(clock[2] / 1000))

local function refresh(log, lock, own, group, value, floor, read, at, delivered, reach)
	local held = redis.pcall('GET', lock)
	if type(held) == 'table' then return '-2 0 -\n' end
	if held ~= value then return '0 0 -\n' end
	redis.call('PEXPIRE', lock, ARGV[1])
	-- Also when the group is gone: then it is all that is left of the position.
	local known = redis.pcall('HMGET', own, 'lost', 'poke', 'tenure', 'floor', 'reach')
	if known.err then return '-2 0 -\n' end
	-- A failover may have kept the lock and forgotten the takeover. Then this group is of an
	-- earlier tenure of ours, which was given what is pending in it: our floor says nothing of it.
	if known[3] and known[3] ~= value then return '-1 0 -\n' end
	local lost = tonumber(known[1] or '') or 0
	if read ~= '' then read = string.format('%.0f', read + lost) end
	-- If it may have forgotten the first takeover of all, our floor is none of this stream: what
	-- was appended since may have smaller IDs, if the clock is behind.
	local may, by = (known[5] or ''):match('^(%d+) (.*)$')
	local by_position = by == value
	if by_position then
		redis.call('HSET', own, 'seen', now)
		if (tonumber(reach) or 0) > tonumber(may) then redis.call('HSET', own, 'reach', reach .. ' ' .. value) end
	elseif known[3] then
		redis.call('HSET', own, 'floor', floor, 'read', read)
	end
	local pending = redis.pcall('XPENDING', log, group)
	if pending.err then
		if pending.err:find('NOGROUP', 1, true) then return '-1 0 -\n' end
		return '-2 0 -\n'
	end
	local counted, position = 0, -1
	if at ~= '' then lost, counted, position = count(log, own, group, at, tonumber(delivered), lost, by_position) end
	return string.format('1 %d %s %.0f %.0f %d %.0f %s\n', pending[1], pending[2] or '-',
		tonumber(known[2] or '') or 0, lost, counted, position, known[4] or '-')
end

local out = {}
for i = 0, #KEYS / 3 - 1 do
	local k, a = i * 3, i * 7 + 2
	out[i + 1] = refresh(KEYS[k + 1], KEYS[k + 2], KEYS[k + 3],
		ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[a + 5], ARGV[a + 6], ARGV[a + 7])
end
return table.concat(out)
