-- Looks at partitions as some of their processors see them. Changes nothing.
--
-- KEYS    for each partition: partition, times of the delayed events, and for each processor: lock, ownership hash,
--         retry states, dead letters
-- ARGV    1 length of an executor ID   2 so many retry states are looked at, where they take a megabyte at most
--         3.. for each partition: the number of processors, and these
-- Returns {names of the values, for each processor of each partition the values or the text of an error}; not for the
--         last ones where it has read about a megabyte before. Names:
--         held (lock value or ''), left (its remaining life in ms), epoch or 0, group or '', delivered (the last ID that was),
--         floor, pending (-1 where the last owner read by position), behind (not delivered, -1 when it must be counted),
--         length, added (entries ever appended, -1 where the server does not tell),
--         end (last ID, '' where it is not known), oldest (the first ID that is not acked, or ''), parked,
--         failed (how many of these failed and wait to be tried again, -1 where they are
--         not looked at), dead, delayed, lost, quarantine (as stored, or ''),
--         halt and forgotten (as stored, or ''),
--         now (ms)
local names = { 'held', 'left', 'epoch', 'group', 'delivered', 'floor', 'pending', 'behind', 'length', 'added', 'end',
	'oldest', 'parked', 'failed', 'dead', 'delayed', 'lost', 'quarantine', 'halt', 'forgotten', 'now' }
local id_length, states_looked = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local spent = 0 -- bytes that were read

-- Whether entries of a partition may be read, which else are too large.
local function small(p)
	if p.small == nil then
		local few
		few, p.each = readable(p.log)
		p.small = few >= math.min(64, p.length)
	end
	return p.small
end

-- The entry beside an ID: the first of a range of entries. Many processors stand at the same one.
local function beside(p, command, from, to)
	local name = command .. from
	local id = p.beside[name]
	if not id then
		local entry = redis.call(command, p.log, from, to, 'COUNT', 1)[1]
		id, spent = entry and entry[1] or '', spent + p.each
		p.beside[name] = id
	end
	return id ~= '' and id or nil
end

-- What the groups of a partition do not tell: that copies its ends. The embedded server has none in its XINFO.
local function examine(p)
	if p.examined or not small(p) then return end
	local info = map(redis.call('XINFO', 'STREAM', p.log))
	p.examined, p.last, p.added, spent = true, last_id(p.log, info), info['entries-added'], spent + 2 * p.each
	if p.length == 0 then return end
	local first, newest = info['first-entry'], info['last-entry']
	if first and first[1] and newest and newest[1] then
		p.first, p.newest = first[1], newest[1]
	else
		p.first, p.newest = beside(p, 'XRANGE', '-', '+'), beside(p, 'XREVRANGE', '+', '-')
	end
end

-- What all processors see of a partition: its groups by processor, and, as far as these tell, how many entries were
-- ever appended and the last ID: that of a group without a lag. Of a partition without entries newer servers tell no lag.
local function partition(log, due)
	local p = { log = log, length = redis.call('XLEN', log), delayed = redis.call('ZCARD', due), beside = {}, groups = {} }
	if p.length == 0 and redis.call('EXISTS', log) == 0 then
		p.added, p.last, p.missing = 0, '0-0', true
		return p
	end
	for _, flat in ipairs(redis.call('XINFO', 'GROUPS', log)) do
		local group = map(flat)
		if group['last-delivered-id'] == '' then group['last-delivered-id'] = '0-0' end
		local processor = processor_of(group['name'], id_length) or ''
		p.groups[processor] = p.groups[processor] or {}
		table.insert(p.groups[processor], group)
		if redis.REDIS_VERSION and p.length > 0 then
			p.added = p.added or appended(group, p.length)
			if group['lag'] == 0 and group['entries-read'] then p.last = group['last-delivered-id'] end
		end
		spent = spent + 500 -- takes as long as so many bytes
	end
	if not p.last or not p.added then examine(p) end
	return p
end

-- The ID up to which a group has acked everything, as takeover.lua finds it, and the first pending one.
local function floor_of(p, group)
	if group['pending'] == 0 then return group['last-delivered-id'] end
	local pending = redis.call('XPENDING', p.log, group['name'])
	if pending[1] == 0 then return group['last-delivered-id'] end
	if not small(p) then return preceding(pending[2]), pending[2] end
	return beside(p, 'XREVRANGE', '(' .. pending[2], '-') or '0-0', pending[2]
end

-- Of several groups of one processor: the owner's, else the one that is furthest behind, for there a takeover begins.
local function group_of(p, processor, held)
	local group, floor, oldest
	for _, g in ipairs(p.groups[processor] or {}) do
		local f, first_pending = floor_of(p, g)
		if g['name'] == processor .. '@' .. held:sub(1, id_length) then return g, f, first_pending end
		if not floor or before(f, floor) then group, floor, oldest = g, f, first_pending end
	end
	return group, floor, oldest
end

-- The server's own lag counts entries that were removed unread, and is none after some removals; without entries-read
-- (the embedded server) it is the length.
local function undelivered(p, group, delivered)
	local lag = group and redis.REDIS_VERSION and group['entries-read'] and tonumber(group['lag'] or '')
	if p.length == 0 or p.last and not before(delivered, p.last) then return 0 end
	if lag and lag > 0 then return math.min(lag, p.length) end
	examine(p)
	if p.newest and not before(delivered, p.newest) then return 0 end
	if delivered == '0-0' or p.first and before(delivered, p.first) then return p.length end
	return -1
end

-- The first ID behind one, or a lower one; '' where that would say nothing.
local function behind(p, delivered)
	if small(p) then return beside(p, 'XRANGE', '(' .. delivered, '+') or '' end
	return delivered ~= '0-0' and following(delivered) or ''
end

-- How many of the parked events failed. A key of an earlier release stands in its state, however long it is.
local function failed_of(retry, parked)
	if parked == 0 then return 0 end
	if parked > states_looked then return -1 end
	local bytes = redis.REDIS_VERSION and redis.pcall('MEMORY', 'USAGE', retry, 'SAMPLES', 0)
	bytes = type(bytes) == 'number' and bytes or 0
	if bytes > 1000000 then return -1 end
	local failed = 0
	for _, state in ipairs(redis.call('HVALS', retry)) do
		if state:find('"first":', 1, true) then failed = failed + 1 end
	end
	spent = spent + bytes
	return failed
end

local function view(p, processor, lock, own, retry, dead_letters)
	local held = redis.call('GET', lock) or ''
	local left = redis.call('PTTL', lock)
	local saved = redis.call('HMGET', own, 'epoch', 'floor', 'quarantine', 'lost', 'gone', 'halt', 'forgotten', 'tenure', 'reach')
	local why = garbled('epoch', saved[1]) or garbled('floor', saved[2]) or garbled('lost', saved[4]) or garbled('gone', saved[5])
	if why then error({ err = why }) end
	local parked = redis.call('HLEN', retry)
	local group, floor, oldest = group_of(p, processor, held)
	local checkpoint = saved[2] or '0-0'
	-- Of an earlier stream of this name? But one that is not there is an empty one.
	if not group and not p.missing and p.last and before(p.last, checkpoint) then checkpoint = '0-0' end
	local delivered = group and group['last-delivered-id'] or checkpoint
	local lag = undelivered(p, group, delivered)
	local by_position = saved[9] and saved[8] == saved[9]:match(' (.*)$')
	-- What is pending may have been removed: its ID still tells since when it waits.
	if not oldest and lag ~= 0 then oldest = behind(p, delivered) end
	return { held, left, tonumber(saved[1] or '') or 0, group and group['name'] or '', delivered, floor or checkpoint,
		by_position and -1 or group and group['pending'] or 0, lag, p.length, p.added or -1, p.last or '',
		oldest or '', parked, failed_of(retry, parked), redis.call('XLEN', dead_letters), p.delayed,
		(tonumber(saved[4] or '') or 0) + (tonumber(saved[5] or '') or 0), saved[3] or '', saved[6] or '', saved[7] or '', now }
end

local out, k, a = { names }, 1, 3
while k <= #KEYS do
	local ok, p = pcall(partition, KEYS[k], KEYS[k + 1])
	local n = tonumber(ARGV[a])
	for i = 1, n do
		if spent > 1000000 and #out > 1 then return out end
		local at, seen, whole = k + 4 * i - 2, p, ok
		if ok then whole, seen = pcall(view, p, ARGV[a + i], KEYS[at], KEYS[at + 1], KEYS[at + 2], KEYS[at + 3]) end
		if not whole and type(seen) == 'table' then seen = seen.err end
		out[#out + 1] = whole and seen or tostring(seen)
	end
	k, a = k + 2 + 4 * n, a + 1 + n
end
return out
