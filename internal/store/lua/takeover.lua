-- Takes a partition over: raises the epoch, makes the executor's consumer group
-- at the floor and destroys the processor's other ones. Repeated for the same
-- tenure it changes nothing. No write happens before every check has passed.
--
-- KEYS    1 partition   2 lock   3 ownership hash: tenure, epoch, floor, read, found, given, expiry,
--         open, before, clean, unclean, suspect, begun, deaths, aside, quarantine, skip, poke, lost, gone, missed, forgotten, moved, time,
--         and of a tenure that reads by position reach, seen, commit   4 retry states
-- ARGV    1 processor   2 executor ID (fixed length, no '@')
--         3 lock value "<executor ID>:<tenure>"
--         4 start of a processor that never ran here: an entry ID or '$'
--         5 largest epoch the caller ever saw for this partition
--         6 expiry of the lock in milliseconds, for those who wait for it
--         7 how many entries behind the floor the owner may begin, who reads by position; '' by group
-- Returns names and values in turns: epoch, floor, read (entries read at the floor,
--         or -1), found (how the floor was found), given (the last ID that an earlier
--         owner was given, at least the floor), unclean (1: the owner before did not
--         release, 2: nor the one before that, at the same suspect), suspect (the event that it was at, or ''), deaths (so many
--         owners in a row ended at that), aside (the IDs behind the
--         floor of what was taken out of the partition, with a space between them), quarantine, skip
--         (as they are stored, or ''), poke, lost (entries that were removed before
--         they were delivered), gone (those that were removed while they were
--         pending), missed (how many of these the takeover found), forgotten (what Redis forgot, with
--         the epoch of who told it, or ''), parked (number of parked events), time (that the partition has come to by
--         commits with changes, in ms, 0 for none), now (ms)
-- Errors  FENCED when the lock does not hold exactly the value, or when this
--         tenure had its group and the group is gone; GARBLED <field> <value> when the ownership
--         hash holds what no owner stores
local log, own, largest = KEYS[1], ARGV[1] .. '@' .. ARGV[2], tonumber(ARGV[5])
if redis.call('GET', KEYS[2]) ~= ARGV[3] then
	return redis.error_reply('FENCED the lock is not ours')
end

local parked = redis.call('HLEN', KEYS[4])

-- The reply, from what is stored.
local function answer()
	local now = redis.call('TIME')
	local s = redis.call('HMGET', KEYS[3], 'epoch', 'floor', 'read', 'found', 'given', 'unclean', 'suspect', 'quarantine', 'skip', 'poke', 'lost', 'gone', 'missed', 'aside', 'deaths', 'forgotten', 'time')
	return { 'epoch', tonumber(s[1]), 'floor', s[2], 'read', tonumber(s[3] or '') or -1, 'found', s[4] or '',
		'given', s[5] or s[2], 'unclean', tonumber(s[6] or '') or 0, 'suspect', s[7] or '',
		'quarantine', s[8] or '', 'skip', s[9] or '', 'poke', tonumber(s[10] or '') or 0,
		'lost', tonumber(s[11] or '') or 0, 'gone', tonumber(s[12] or '') or 0,
		'missed', tonumber(s[13] or '') or 0, 'aside', s[14] or '', 'deaths', tonumber(s[15] or '') or 0, 'forgotten', s[16] or '',
		'parked', parked, 'time', tonumber(s[17] or '') or 0, 'now', now[1] * 1000 + math.floor(now[2] / 1000) }
end

local exists = redis.call('EXISTS', log) == 1
local groups, mine, plain, given = {}, false, nil, '0-0' -- those of the processor's owners
if exists then
	for _, flat in ipairs(redis.call('XINFO', 'GROUPS', log)) do
		local group = map(flat)
		if group['last-delivered-id'] == '' then group['last-delivered-id'] = '0-0' end
		if is_group_of(ARGV[1], group['name'], #ARGV[2]) then
			groups[#groups + 1] = group
			mine = mine or group['name'] == own
			if before(given, group['last-delivered-id']) then given = group['last-delivered-id'] end
		elseif group['name'] == ARGV[1] then
			plain = group
		end
	end
end

local fields = { 'tenure', 'epoch', 'floor', 'read', 'open', 'clean', 'suspect', 'begun', 'deaths', 'aside', 'given', 'lost', 'moved', 'reach', 'seen', 'expiry' }
local saved = {}
for i, value in ipairs(redis.call('HMGET', KEYS[3], unpack(fields))) do saved[fields[i]] = value end
for _, field in ipairs({ 'epoch', 'floor', 'given', 'suspect', 'read', 'lost', 'deaths' }) do
	local why = garbled(field, saved[field])
	if why then return redis.error_reply(why) end
end
if saved.tenure == ARGV[3] then
	if not mine then return redis.error_reply('FENCED the group of this tenure is gone') end
	-- A write that needs no memory, for WAIT; see durably.
	redis.call('PEXPIRE', KEYS[2], math.max(redis.call('PTTL', KEYS[2]), tonumber(ARGV[6]), 1))
	return answer()
end

-- A waiting worker may have shortened the lock since it was obtained, to the expiry of
-- the owner before. Also a write that needs no memory, see obtain.lua.
redis.call('PEXPIRE', KEYS[2], math.max(tonumber(ARGV[6]), 1), 'GT')

local floor, read, found, first, group = nil, nil, 'group', nil, nil
local lost, gone = 0, 0
local aside = {}
for id in (saved.aside or ''):gmatch('%S+') do aside[#aside + 1] = id end

if #groups == 1 then floor, read, first = released(log, groups[1], saved) end
if floor then
	group = groups[1]
else
	for _, g in ipairs(groups) do
		local f, r, missing, oldest = position(log, g, aside)
		local from = 'group'
		gone = math.max(gone, missing)
		-- A group that was read has a consumer. Deleted by hand, it took its pending entries along.
		if g['consumers'] == 0 and saved.floor and before(saved.floor, f) then
			f, r, from = saved.floor, tonumber(saved.read or ''), 'checkpoint'
		end
		if not floor or before(f, floor) then floor, read, first, group, found = f, r, oldest, g, from end -- the lowest: repeat, never skip
	end
	-- A replica, and a server that loaded its append-only file, know less of what a group has read
	-- than the master did: XREADGROUP is replicated as XCLAIM, which does not count. Then the last
	-- checkpoint, and what is there behind it, tell more.
	local at = tonumber(saved.read or '')
	if floor and read and saved.floor and at and not before(floor, saved.floor) then
		local moved = group['pending'] == 0 and floor ~= saved.floor
		if read < at or moved and read == at then
			local since = entries_between(log, saved.floor, floor)
			read = since and at + since
		end
	end
end

if not floor and saved.floor then -- destroyed by hand, or the partition was deleted
	floor, found = '0-0', 'reset'
	if exists then
		local facts, at = facts_of(log, own), tonumber(saved.read or '')
		local same = not before(facts.last, saved.floor)
		if same and at and facts.added and facts.added < at then same = false end
		if same then floor, read, found = saved.floor, at, 'checkpoint' end
	end
elseif not floor and plain then -- where a worker of Python's runnel stopped
	floor, read = position(log, plain, {}, true)
	found = 'plain group'
elseif not floor and largest > 0 then -- it ran here, and everything was flushed since
	floor, found = '0-0', 'reset'
elseif not floor then
	floor, found = ARGV[4], 'start'
	if floor == '$' then floor = exists and facts_of(log, own).last or '0-0' end
end

local reach, by = (saved.reach or ''):match('^(%d+) (.*)$')
local by_position = reach and by == saved.tenure
if by_position and read and found == 'group' then read = read + removed_of(log, group, floor, aside) end

-- Entries behind the floor may be gone, if more were ever appended than are left and lie up to the
-- floor. What was trimmed before the first entry counts as read.
local left = exists and redis.call('XLEN', log) or 0
if not exists then
	if floor == '0-0' then read = 0 end
elseif floor == '0-0' and not read then
	local added = facts_of(log, own).added
	read = added and added - left
elseif read and found ~= 'start' then
	local added = appended(group, left) or facts_of(log, own).added
	local changes = saved.reach and ARGV[7] == '' -- an owner by position may not have counted what was lost, and the server corrects a group's number
	if added and (changes or added - left > read) then
		local passed = added - left + (entries_between(log, '0-0', floor) or 0)
		if passed > read then
			-- A checkpoint may be older than acks, whose entries were trimmed since.
			if found == 'group' or found == 'plain group' and trimmed_past(log, own, floor, left) then lost = passed - read end
			read = passed
		end
	end
end

if before(given, floor) then given = floor end
-- By position no group tells what the owner before has begun: only how much it may have, until its lock ended.
if by_position and saved.open == '1' and found == 'group' and not first then
	local ended = (tonumber(saved.seen or '') or 0) + (tonumber(saved.expiry or '') or 0)
	first, given = begun(log, floor, tonumber(reach), ended, saved.aside or '')
	given = given or floor
end
-- An owner that did not release was at the oldest unacked event when it ended, if it was given
-- that. The event stays the suspect over any number of takeovers until it is acked: an owner that
-- ended before it got there proves nothing.
local unclean, suspect, before_it = saved.open == '1', '', saved.suspect or ''
if unclean and first then
	suspect = first
elseif before_it ~= '' and before(floor, before_it) and (not first or first == before_it) then
	suspect = before_it
end
-- The first of these is a guess. Later owners had stored that they began it, see begin.lua.
local deaths = 0
if suspect ~= '' then
	deaths = suspect == before_it and tonumber(saved.deaths or '') or 0
	if unclean and (suspect ~= before_it or saved.begun == suspect) then deaths = deaths + 1 end
	deaths = math.max(deaths, 1)
end
-- What an owner was given stays given, also if the next one ended before it read.
local same = found == 'group' or found == 'checkpoint'
if same and saved.given and before(given, saved.given) then given = saved.given end
if same and saved.floor and before(given, saved.floor) then given = saved.floor end -- set back by hand
-- What is parked is not in the partition any more. Without the group what was acked comes again behind an older position.
if found == 'checkpoint' then
	local known = words(saved.aside or '')
	for _, id in ipairs(redis.call('HKEYS', KEYS[4])) do
		if not known[id] and not garbled('floor', id) then aside[#aside + 1] = id end
	end
end
local behind = {}
for _, id in ipairs(found ~= 'reset' and aside or {}) do
	if before(floor, id) then behind[#behind + 1] = id end
end
local now = redis.call('TIME')
local epoch = math.max((tonumber(saved.epoch or '') or 0) + 1, now[1] * 1000 + math.floor(now[2] / 1000), largest + 1)
local removed = not saved.epoch and saved.moved -- by an operator; what tells so expires, see forget.lua
if removed then redis.call('DEL', KEYS[3]) end
redis.call('HSET', KEYS[3], 'tenure', ARGV[3], 'epoch', string.format('%.0f', epoch),
	'floor', floor, 'read', read and string.format('%.0f', read) or '', 'found', found, 'given', given, 'expiry', ARGV[6],
	'open', '1', 'unclean', unclean and (suspect ~= '' and suspect == before_it and '2' or '1') or '0', 'suspect', suspect, 'deaths', deaths, 'aside', table.concat(behind, ' '),
	'missed', lost + gone)
if removed then redis.call('HSET', KEYS[3], 'moved', removed) end
-- The lease of the owner before may hold for as long as its lock would have, as if the server's clock was set forward.
if unclean then
	redis.call('HSET', KEYS[3], 'before', ('%s %s %.0f'):format((saved.tenure or ''):match('^[^:]*'), tonumber(saved.expiry or '') or 0, now[1] * 1000 + math.floor(now[2] / 1000)))
end
if found == 'reset' then redis.call('HDEL', KEYS[3], 'time') end
redis.call('HDEL', KEYS[3], 'clean', 'begun', 'commit', 'reach', 'seen')
if ARGV[7] ~= '' then
	redis.call('HSET', KEYS[3], 'reach', ARGV[7] .. ' ' .. ARGV[3], 'seen', string.format('%.0f', now[1] * 1000 + math.floor(now[2] / 1000)))
end
-- Another stream than the one that was read, or an older state of all.
if found == 'reset' and saved.floor then
	local to = saved.given and before(saved.floor, saved.given) and saved.given or saved.floor
	redis.call('HSET', KEYS[3], 'forgotten', forgotten_text('partition', saved.floor, to, epoch))
elseif largest > 1 and (tonumber(saved.epoch or saved.moved or '') or 0) < largest then
	redis.call('HSET', KEYS[3], 'forgotten', forgotten_text('state', floor, '', epoch))
end
if lost > 0 then redis.call('HINCRBY', KEYS[3], 'lost', lost) end
if gone > 0 then redis.call('HINCRBY', KEYS[3], 'gone', gone) end
if mine then redis.call('XGROUP', 'DESTROY', log, own) end
local made
if read then -- so that the server's own idea of the lag stays true
	made = redis.pcall('XGROUP', 'CREATE', log, own, floor, 'MKSTREAM', 'ENTRIESREAD', string.format('%.0f', read))
end
if not made or made.err then redis.call('XGROUP', 'CREATE', log, own, floor, 'MKSTREAM') end
for _, g in ipairs(groups) do
	if g['name'] ~= own then redis.call('XGROUP', 'DESTROY', log, g['name']) end
end
return answer()
