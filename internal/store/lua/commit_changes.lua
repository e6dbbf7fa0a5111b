-- A commit that also stores what was changed and emitted up to its position, all of it or nothing; behind commit.lua.
-- What a later call could refuse is looked at before the first write: types of keys, rights and room. Memory is judged
-- at the first write, and only there: one that needs some stands before a commit that grows, one that needs none before
-- one that only deletes and moves on, so that this passes a full server.
--
-- KEYS    behind those of commit.lua: the outbox, if anything is for other slots; states of parked events and these events, if
--         any is settled; rows and times of each table; the partitions that are appended to
-- ARGV    behind those of commit.lua: 8 1 if it grows, else 0   9 number of settled events   10 of tables   11 of partitions
--         12 of entries for the outbox   13 the epoch and 14 the number of what was last put there by this tenure, which
--         make the IDs there   15 the time that the partition has come to, in ms, 0 for unknown
--         for each entry of the outbox the number of its fields and values, and these, with its target before them;
--         the IDs of the settled events; for each table: numbers of rows that are set, of deleted ones, of times that
--         are set and removed, the time in ms by which rows go that have ended, 0 for none, then key, value / key / ms,
--         key / key; for each partition: the length that it may have or 0, its number of entries, and for each the
--         number of its fields and values, and these
-- Replies as commit.lua does, and 'FULL <i>' if partition i has no room: then nothing was done
local call, argv, may = redis.call, ARGV, redis.acl_check_cmd or function() return true end
local settled, tables, targets, boxed = tonumber(argv[9]), tonumber(argv[10]), tonumber(argv[11]), tonumber(argv[12])
local parked = boxed > 0 and 4 or 3 -- the key of the states
local first = settled > 0 and parked + 2 or parked -- key of a table

local function number_at(i) return tonumber(argv[i]) end

local start = 16 -- the argument behind the outbox's entries
for _ = 1, boxed do start = start + 1 + number_at(start) end

local function check(name, key, ...)
	if not may(name, key, ...) then return redis.error_reply('NOPERM this user has no right to run ' .. name .. ' on ' .. key) end
end

-- What would refuse a part of the commit, nil for nothing.
local function obstacle()
	local key, at = first, start + settled
	if boxed > 0 then
		call('XLEN', KEYS[3])
		local no = check('XADD', KEYS[3], '*', 'a', 'b')
		if no then return no end
	end
	if settled > 0 then
		for k = parked, parked + 1 do
			call('HLEN', KEYS[k])
			local no = check('HDEL', KEYS[k], 'a')
			if no then return no end
		end
	end
	for _ = 1, tables do
		local sets, dels, times, lasting = number_at(at), number_at(at + 1), number_at(at + 2), number_at(at + 3)
		local rows, due = KEYS[key], KEYS[key + 1]
		call('HLEN', rows)
		call('ZCARD', due)
		local no = check('HSET', rows, 'a', 'b') or check('HDEL', rows, 'a') or check('ZADD', due, '0', 'a')
			or check('ZREM', due, 'a') or check('ZRANGEBYSCORE', due, '-inf', '0')
		if no then return no end
		at, key = at + 5 + 2 * sets + dels + 2 * times + lasting, key + 2
	end
	for i = 1, targets do
		local most, n = number_at(at), number_at(at + 1)
		local length = call('XLEN', KEYS[key])
		if most > 0 and length + n > most then return 'FULL ' .. i end
		local no = check('XADD', KEYS[key], '*', 'a', 'b')
		if no then return no end
		at, key = at + 2, key + 1
		for _ = 1, n do at = at + 1 + number_at(at) end
	end
	local no = check('HSET', own, 'a', 'b') or check('XGROUP', 'SETID', log, argv[2], argv[4])
	if no then return no end
	local group = redis.pcall('XPENDING', log, argv[2]) -- by position it is empty
	if group.err then return group end -- NOGROUP is FENCED, too
end

local function prepare(done)
	local no = obstacle()
	if no then return no end
	if argv[8] == '1' then call('HSET', own, 'commit', done) else call('HDEL', own, '') end
end

-- A command with n times width arguments from one on, in as many calls as Lua's stack makes it. Returns the next one.
local function with(name, key, from, n, width)
	local stop = from + n * width
	while from < stop do
		local to = math.min(stop, from + 4000)
		call(name, key, unpack(argv, from, to - 1))
		from = to
	end
	return stop
end

-- Puts what is for other slots into the outbox. An ID there that is not larger than those before is refused, by the first of
-- these writes: hence they come first.
local function box()
	local at, number = 16, number_at(14)
	for i = 1, boxed do
		local width = number_at(at)
		local id = argv[13] .. '-' .. string.format('%.0f', number + i)
		local put = redis.pcall('XADD', KEYS[3], id, unpack(argv, at + 1, at + width))
		if type(put) == 'table' and put.err then
			if put.err:find('equal or smaller', 1, true) then return 'BEHIND its outbox has newer entries than ' .. id end
			return put
		end
		at = at + 1 + width
	end
end

local function write()
	local key, at = first, start + settled
	if settled > 0 then
		with('HDEL', KEYS[parked], start, settled, 1)
		with('HDEL', KEYS[parked + 1], start, settled, 1)
	end
	for _ = 1, tables do
		local sets, dels, times, lasting = number_at(at), number_at(at + 1), number_at(at + 2), number_at(at + 3)
		local rows, due, ended = KEYS[key], KEYS[key + 1], argv[at + 4]
		at = with('HSET', rows, at + 5, sets, 2)
		at = with('HDEL', rows, at, dels, 1)
		at = with('ZADD', due, at, times, 2)
		at = with('ZREM', due, at, lasting, 1)
		-- Rows whose time has come by the partition's own: no event of it will see them.
		local over = ended ~= '0' and call('ZRANGEBYSCORE', due, '-inf', ended, 'LIMIT', 0, 128 + times) or {}
		for from = 1, #over, 4000 do
			local to = math.min(#over, from + 3999)
			call('HDEL', rows, unpack(over, from, to))
			call('ZREM', due, unpack(over, from, to))
		end
		key = key + 2
	end
	for _ = 1, targets do
		local n, target = number_at(at + 1), KEYS[key]
		at, key = at + 2, key + 1
		for _ = 1, n do
			local width = number_at(at)
			call('XADD', target, '*', unpack(argv, at + 1, at + width))
			at = at + 1 + width
		end
	end
end

local no = refusal(prepare) or box()
if no then return no end
write()
if argv[15] == '0' then return advance() or 'OK' end
return advance('time', argv[15]) or 'OK'
