-- What commits of a tenure that reads by position have in common. A commit stores that the tenure is done with a partition up to
-- an entry. Commits are numbered from 1: one that is repeated, or late, changes nothing, and a gap tells that the server has
-- forgotten some. The libraries, which few commits need, stand before it in a function, seldom: the server makes all functions
-- of a script anew in each run.
--
-- KEYS    1 partition   2 ownership hash: tenure, commit, floor, read, lost, aside
-- ARGV    1 lock value   2 group   3 number of the commit   4 the floor   5 entries read up to it, without lost
--         ones, or ''   6 the IDs up to the floor of what this tenure has taken out of the partition since the commit
--         before, with a space between them   7 1 if the entry at the floor may be large, else 0
-- Replies 'OK', 'AGAIN' for one that was done before, 'BEHIND <why>' for one that the server cannot follow
-- Errors  FENCED when another tenure has the partition, or the group is gone
local log, own, number = KEYS[1], KEYS[2], tonumber(ARGV[3])
local saved = redis.call('HMGET', own, 'tenure', 'commit', 'lost', 'floor', 'aside', 'read')

-- The reply to a commit that is not to be done, nil for one that is. A function that is given has a say before the first
-- write; it gets the number of commits that are known.
local function refusal(prepare)
	if saved[1] ~= ARGV[1] then return redis.error_reply('FENCED the partition is not ours') end
	local done = tonumber(saved[2] or '') or 0
	if number <= done then return 'AGAIN' end
	if number > done + 1 then return 'BEHIND it knows ' .. done .. ' commits, not ' .. number - 1 end
	local no = prepare and prepare(done)
	if no then return no end

	-- A server that was behind may know every commit, and not what was done since. Then entries up to the floor may
	-- be others than those that were read, and what was taken out may be back.
	if ARGV[6] ~= '' then
		local aside = seldom().words(saved[5] or '')
		for id in ARGV[6]:gmatch('%S+') do
			if not aside[id] then return 'BEHIND ' .. id .. ' was not taken out' end
		end
	end
	if ARGV[7] == '0' and #redis.call('XRANGE', log, ARGV[4], ARGV[4]) == 1 then return nil end
	local lib = seldom()
	if not lib.is_there(log, ARGV[2], ARGV[4], ARGV[7] == '1') then -- dropped while it was processed, or it never was
		local other = redis.call('XRANGE', log, '(' .. (saved[4] or '0-0'), ARGV[4], 'COUNT', 1)[1]
		if other then return 'BEHIND it has ' .. other[1] .. ', and not ' .. ARGV[4] end
		-- If it never was, what comes next may get a lower ID, where the clock is behind.
		if redis.call('EXISTS', log) == 1 then
			redis.call('HDEL', own, '') -- the look works when the memory of the server is full, see obtain.lua
			local read = tonumber(ARGV[5])
			local why = lib.never_had(log, own, ARGV[4], saved[4] or '0-0', read and read + (tonumber(saved[3] or '') or 0), tonumber(saved[6] or ''))
			if why then return 'BEHIND ' .. why end
		end
	end
end

-- Moves the position, and stores more fields. Returns the error that there is no group, or nil.
local function advance(...)
	local read, moved = '', nil
	if ARGV[5] ~= '' then
		read = string.format('%.0f', ARGV[5] + (tonumber(saved[3] or '') or 0))
		moved = redis.pcall('XGROUP', 'SETID', log, ARGV[2], ARGV[4], 'ENTRIESREAD', read)
	else
		moved = redis.pcall('XGROUP', 'SETID', log, ARGV[2], ARGV[4])
	end
	if moved.err then
		if redis.REDIS_VERSION then
			if moved.err:find('NOGROUP', 1, true) or moved.err:find('requires the key', 1, true) then
				return redis.error_reply('FENCED the group of this tenure is gone')
			end
			return moved
		end
		-- The embedded server has no SETID.
		if redis.pcall('XGROUP', 'DESTROY', log, ARGV[2]) ~= 1 then return redis.error_reply('FENCED the group of this tenure is gone') end
		redis.call('XGROUP', 'CREATE', log, ARGV[2], ARGV[4])
	end
	redis.call('HSET', own, 'commit', ARGV[3], 'floor', ARGV[4], 'read', read, ...)
end
