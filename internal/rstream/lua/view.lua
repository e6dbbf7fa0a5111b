-- Looks at partitions as one processor sees them. Changes nothing.
--
-- KEYS    for each partition: partition, lock, ownership hash, retry states, dead
--         letters, times of the delayed events
-- ARGV    1 processor   2 length of an executor ID   3 so many retry states are looked at
-- Returns for each partition the text of an error, or names and values in turns:
--         held (lock value or ''), left (its remaining life in ms), epoch or 0, group or '', delivered (the last ID that was),
--         floor, pending, behind (not delivered, -1 when it must be counted),
--         length, added (entries ever appended, -1 where the server does not tell),
--         end (last ID), oldest (the first ID that is not acked, or ''), parked,
--         failed (how many of these failed and wait to be tried again, -1 where more are
--         parked than are looked at), dead, delayed, lost, quarantine (as stored, or ''),
--         halt (as stored, or ''),
--         now (ms)
local id_length = tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- The ID up to which everything is acked, as takeover.lua finds it, and the first
-- pending one.
local function floor_of(log, group)
	if group['pending'] == 0 then return group['last-delivered-id'] end
	local pending = redis.call('XPENDING', log, group['name'])
	if pending[1] == 0 then return group['last-delivered-id'] end
	local previous = redis.call('XREVRANGE', log, '(' .. pending[2], '-', 'COUNT', 1)
	return previous[1] and previous[1][1] or '0-0', pending[2]
end

-- The first and the last entry's ID; the embedded server has none in its XINFO.
local function ends_of(log, info)
	if info['length'] == 0 then return end
	local first, newest = info['first-entry'], info['last-entry']
	if first and first[1] and newest and newest[1] then return first[1], newest[1] end
	return redis.call('XRANGE', log, '-', '+', 'COUNT', 1)[1][1], redis.call('XREVRANGE', log, '+', '-', 'COUNT', 1)[1][1]
end

local function view(log, lock, own, retry, dead_letters, due)
	local held = redis.call('GET', lock) or ''
	local left = redis.call('PTTL', lock)
	local saved = redis.call('HMGET', own, 'epoch', 'floor', 'quarantine', 'lost', 'gone', 'halt')
	local epoch, checkpoint = tonumber(saved[1] or '') or 0, saved[2] or '0-0'
	local parked, dead, delayed = redis.call('HLEN', retry), redis.call('XLEN', dead_letters), redis.call('ZCARD', due)
	local failed = 0
	if parked > tonumber(ARGV[3]) then
		failed = -1
	elseif parked > 0 then
		for _, state in ipairs(redis.call('HVALS', retry)) do
			if state:find('"first":', 1, true) then failed = failed + 1 end
		end
	end

	local function answer(group, delivered, floor, pending, behind, length, added, last, oldest)
		return { 'held', held, 'left', left, 'epoch', epoch, 'group', group, 'delivered', delivered, 'floor', floor,
			'pending', pending, 'behind', behind, 'length', length, 'added', added, 'end', last, 'oldest', oldest, 'now', now,
			'parked', parked, 'failed', failed, 'dead', dead, 'delayed', delayed, 'lost', (tonumber(saved[4] or '') or 0) + (tonumber(saved[5] or '') or 0), 'quarantine', saved[3] or '', 'halt', saved[6] or '' }
	end
	-- One that is not there is an empty one.
	local info = redis.pcall('XINFO', 'STREAM', log)
	if info.err then
		if redis.call('EXISTS', log) ~= 0 then error(info) end
		return answer('', checkpoint, checkpoint, 0, 0, 0, 0, '0-0', '')
	end
	info = map(info)

	-- Several groups of one processor: the owner's, else the one that is furthest
	-- behind, for there a takeover begins.
	local group, floor, oldest
	for _, flat in ipairs(redis.call('XINFO', 'GROUPS', log)) do
		local g = map(flat)
		if is_group_of(ARGV[1], g['name'], id_length) then
			if g['last-delivered-id'] == '' then g['last-delivered-id'] = '0-0' end
			local f, first_pending = floor_of(log, g)
			if g['name'] == ARGV[1] .. '@' .. held:sub(1, id_length) then
				group, floor, oldest = g, f, first_pending
				break
			end
			if not floor or before(f, floor) then group, floor, oldest = g, f, first_pending end
		end
	end

	local length, last = info['length'], last_id(log, info)
	local first, newest = ends_of(log, info)
	if not group and before(last, checkpoint) then checkpoint = '0-0' end -- of an earlier stream of this name
	local delivered = group and group['last-delivered-id'] or checkpoint

	-- The server's own lag counts entries that were removed unread, and is none after
	-- some removals; without entries-read (the embedded server) it is the length.
	local undelivered = -1
	if length == 0 or not before(delivered, newest) then
		undelivered = 0
	elseif before(delivered, first) then
		undelivered = length
	elseif group and group['entries-read'] and group['lag'] and group['lag'] > 0 and group['lag'] < length then
		undelivered = group['lag']
	end

	-- What is pending may have been removed: its ID still tells since when it waits.
	if not oldest and undelivered ~= 0 then
		local next = redis.call('XRANGE', log, '(' .. delivered, '+', 'COUNT', 1)
		oldest = next[1] and next[1][1]
	end
	return answer(group and group['name'] or '', delivered, floor or checkpoint,
		group and group['pending'] or 0, undelivered, length, info['entries-added'] or -1, last, oldest or '')
end

local out = {}
for i = 0, #KEYS / 6 - 1 do
	local k = i * 6
	local ok, seen = pcall(view, KEYS[k + 1], KEYS[k + 2], KEYS[k + 3], KEYS[k + 4], KEYS[k + 5], KEYS[k + 6])
	if not ok and type(seen) == 'table' then seen = seen.err end
	out[i + 1] = ok and seen or tostring(seen)
end
return out
