-- Takes a partition over: raises the epoch, makes the executor's consumer group
-- at the floor and destroys the processor's other ones. Repeated for the same
-- tenure it changes nothing. No write happens before every check has passed.
--
-- KEYS    1 partition   2 lock   3 ownership hash: tenure, epoch, floor, read, found, given, expiry,
--         open, unclean, suspect, aside, quarantine, skip, poke, lost, gone, missed   4 retry states
-- ARGV    1 processor   2 executor ID (fixed length, no '@')
--         3 lock value "<executor ID>:<tenure>"
--         4 start of a processor that never ran here: an entry ID or '$'
--         5 largest epoch the caller ever saw for this partition
--         6 expiry of the lock in milliseconds, for those who wait for it
-- Returns names and values in turns: epoch, floor, read (entries read at the floor,
--         or -1), found (how the floor was found), given (the last ID that an earlier
--         owner was given, at least the floor), unclean (1: the owner before did not
--         release), suspect (the event that it was at, or ''), aside (the IDs behind the
--         floor of what was taken out of the partition, with a space between them), quarantine, skip
--         (as they are stored, or ''), poke, lost (entries that were removed before
--         they were delivered), gone (those that were removed while they were
--         pending), missed (how many of these the takeover found), parked (number of parked events), now (ms)
-- Errors  FENCED when the lock does not hold exactly the value, or when this
--         tenure had its group and the group is gone
local log, own, largest = KEYS[1], ARGV[1] .. '@' .. ARGV[2], tonumber(ARGV[5])
if redis.call('GET', KEYS[2]) ~= ARGV[3] then
	return redis.error_reply('FENCED the lock is not ours')
end

-- The position that a group would be read on from without skipping anything.
local function position(group)
	local floor, read = group['last-delivered-id'], tonumber(group['entries-read'] or '')
	if floor == '' then floor = '0-0' end
	local missing, list = 0, redis.call('XPENDING', log, group['name'], '-', '+', 1000)
	if #list == 0 then return floor, read, 0 end
	-- Without those that were removed, on the embedded server.
	local pending = redis.call('XPENDING', log, group['name'])
	if pending[1] > 0 then
		local previous = redis.call('XREVRANGE', log, '(' .. pending[2], '-', 'COUNT', 1)
		floor = previous[1] and previous[1][1] or '0-0'
	end
	-- Counted, not taken from the number of pending ones: acks may have gaps.
	local behind = redis.call('XRANGE', log, '(' .. floor, group['last-delivered-id'], 'COUNT', 1001)
	if #behind > 1000 then return floor, nil, 0 end
	read = read and math.max(read - #behind, 0)
	-- The new group knows nothing of those that were removed meanwhile.
	local there = {}
	for _, entry in ipairs(behind) do there[entry[1]] = true end
	for _, one in ipairs(list) do
		if not there[one[1]] then missing = missing + 1 end
	end
	return floor, read, missing
end

local parked = redis.call('HLEN', KEYS[4])

-- The reply, from what is stored.
local function answer()
	local now = redis.call('TIME')
	local s = redis.call('HMGET', KEYS[3], 'epoch', 'floor', 'read', 'found', 'given', 'unclean', 'suspect', 'quarantine', 'skip', 'poke', 'lost', 'gone', 'missed', 'aside')
	return { 'epoch', tonumber(s[1]), 'floor', s[2], 'read', tonumber(s[3] or '') or -1, 'found', s[4] or '',
		'given', s[5] or s[2], 'unclean', s[6] == '1' and 1 or 0, 'suspect', s[7] or '',
		'quarantine', s[8] or '', 'skip', s[9] or '', 'poke', tonumber(s[10] or '') or 0,
		'lost', tonumber(s[11] or '') or 0, 'gone', tonumber(s[12] or '') or 0,
		'missed', tonumber(s[13] or '') or 0, 'aside', s[14] or '',
		'parked', parked, 'now', now[1] * 1000 + math.floor(now[2] / 1000) }
end

local exists = redis.call('EXISTS', log) == 1
local floor, read, found, mine, plain, others, given = nil, nil, 'group', false, nil, {}, '0-0'
local lost, gone = 0, 0
if exists then
	for _, flat in ipairs(redis.call('XINFO', 'GROUPS', log)) do
		local group = map(flat)
		local name = group['name']
		if is_group_of(ARGV[1], name, #ARGV[2]) then
			local f, r, missing = position(group)
			gone = math.max(gone, missing)
			if not floor or before(f, floor) then floor, read = f, r end -- the lowest: repeat, never skip
			local last = group['last-delivered-id']
			if last ~= '' and before(given, last) then given = last end
			if name == own then mine = true else others[#others + 1] = name end
		elseif name == ARGV[1] then
			plain = group
		end
	end
end

local saved = redis.call('HMGET', KEYS[3], 'tenure', 'epoch', 'floor', 'read', 'open', 'suspect', 'aside', 'given')
if saved[1] == ARGV[3] then
	if not mine then return redis.error_reply('FENCED the group of this tenure is gone') end
	-- A write that needs no memory, for WAIT; see durably.
	redis.call('PEXPIRE', KEYS[2], math.max(redis.call('PTTL', KEYS[2]), tonumber(ARGV[6]), 1))
	return answer()
end

-- A replica, and a server that has read its append-only file, know less of what a group
-- has read than the master did: XREADGROUP is replicated as XCLAIM, which does not count.
-- Then the last checkpoint, and what is there behind it, tell more.
if floor and read and saved[3] and tonumber(saved[4] or '') and not before(floor, saved[3]) then
	local since = redis.call('XRANGE', log, '(' .. saved[3], floor, 'COUNT', 1001)
	local least = tonumber(saved[4]) + #since
	if #since <= 1000 then read = math.max(read, least) elseif read < least then read = nil end
end

if not floor and saved[3] then -- destroyed by hand, or the partition was deleted
	floor, found = '0-0', 'reset'
	if exists then
		local info = map(redis.call('XINFO', 'STREAM', log))
		local added = info['entries-added']
		local same = not before(last_id(log, info), saved[3])
		local at = tonumber(saved[4] or '')
		if same and at and added and added < at then same = false end
		if same then floor, read, found = saved[3], at, 'checkpoint' end
	end
elseif not floor and plain then -- where a worker of Python's runnel stopped
	floor, read = position(plain)
	found = 'plain group'
elseif not floor and largest > 0 then -- it ran here, and everything was flushed since
	floor, found = '0-0', 'reset'
elseif not floor then
	floor, found = ARGV[4], 'start'
	if floor == '$' then
		floor = exists and last_id(log, map(redis.call('XINFO', 'STREAM', log))) or '0-0'
	end
end

if not read and floor == '0-0' then -- what was trimmed before the first entry counts as read
	if exists then
		local added = map(redis.call('XINFO', 'STREAM', log))['entries-added']
		read = added and added - redis.call('XLEN', log)
	else
		read = 0
	end
end

-- Entries behind the floor may be gone. Where nothing was deleted behind the first
-- entry that is left, the number of those before it is known.
local info = read and found ~= 'start' and exists and map(redis.call('XINFO', 'STREAM', log))
if info and info['entries-added'] then
	local left, first = redis.call('XLEN', log), redis.call('XRANGE', log, '-', '+', 'COUNT', 1)[1]
	local before_first = info['entries-added'] - left
	local deleted = info['max-deleted-entry-id']
	if first and before(floor, first[1]) and before(deleted, first[1]) or not first then
		-- A checkpoint may be older than acks, whose entries were trimmed since.
		if found == 'group' and before_first > read then lost = before_first - read end
		read = math.max(read, before_first)
	elseif found == 'checkpoint' and first and before(floor, first[1]) then
		read = nil
	end
end

if before(given, floor) then given = floor end
-- Whose owner did not release it was at the oldest unacked event when it ended, if
-- that one had been given to it. It stays the suspect over any number of takeovers,
-- until it is acked: an owner that ended before it got there proves nothing.
local unclean, suspect = saved[5] == '1', ''
local oldest = exists and redis.call('XRANGE', log, '(' .. floor, '+', 'COUNT', 1)[1]
if oldest and ((unclean and not before(given, oldest[1])) or oldest[1] == saved[6]) then suspect = oldest[1] end
-- What an owner was given stays given, also if the next one ended before it read.
local same = found == 'group' or found == 'checkpoint'
if same and saved[8] and before(given, saved[8]) then given = saved[8] end
local aside = {}
for id in (found ~= 'reset' and saved[7] or ''):gmatch('%S+') do
	if before(floor, id) then aside[#aside + 1] = id end
end
-- Whoever waited may have cut the lock since it was obtained, to the expiry of the
-- owner before. Also a write that needs no memory, see obtain.lua.
redis.call('PEXPIRE', KEYS[2], math.max(tonumber(ARGV[6]), 1), 'GT')
local now = redis.call('TIME')
local epoch = math.max((tonumber(saved[2] or '') or 0) + 1, now[1] * 1000 + math.floor(now[2] / 1000), largest + 1)
redis.call('HSET', KEYS[3], 'tenure', ARGV[3], 'epoch', string.format('%.0f', epoch),
	'floor', floor, 'read', read and string.format('%.0f', read) or '', 'found', found, 'given', given, 'expiry', ARGV[6],
	'open', '1', 'unclean', unclean and '1' or '0', 'suspect', suspect, 'aside', table.concat(aside, ' '),
	'missed', lost + gone)
if lost > 0 then redis.call('HINCRBY', KEYS[3], 'lost', lost) end
if gone > 0 then redis.call('HINCRBY', KEYS[3], 'gone', gone) end
if mine then redis.call('XGROUP', 'DESTROY', log, own) end
local made
if read then -- so that the server's own idea of the lag stays true
	made = redis.pcall('XGROUP', 'CREATE', log, own, floor, 'MKSTREAM', 'ENTRIESREAD', string.format('%.0f', read))
end
if not made or made.err then redis.call('XGROUP', 'CREATE', log, own, floor, 'MKSTREAM') end
for _, name in ipairs(others) do redis.call('XGROUP', 'DESTROY', log, name) end
return answer()
