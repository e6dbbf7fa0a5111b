-- Stands before plain.lua and send.lua, and numbered_end.lua behind them, where entries are numbered: their IDs are
-- "<ms>-<n>". n counts all entries that the log ever had, without gaps; ms is when they came, by the server's clock,
-- and never goes back. So one ID says order, time and count, and a number that is missing is an entry that was removed.
--
-- KEYS    behind the others, for each partition: the log, and the key of the last ID that it gave
-- ARGV    behind the others: how many partitions
local last_ids, given = {}, {}
for _ = 1, tonumber(table.remove(ARGV)) do
	local key = table.remove(KEYS)
	last_ids[table.remove(KEYS)] = key
end
local clock = redis.call('TIME')
local arrived = clock[1] .. ('%03d'):format(math.floor(clock[2] / 1000))

-- The ms and the number of the last entry of a log; or an error.
local function last_of(log)
	local last = redis.pcall('GET', last_ids[log])
	if type(last) == 'table' then return nil, last end
	if not last then -- nothing was appended yet, or the key was lost
		local newest = redis.pcall('XREVRANGE', log, '+', '-', 'COUNT', 1)
		if newest.err then return nil, newest end
		last = newest[1] and newest[1][1] or '0-0'
	end
	local ms, n = last:match('^(%d+)-(%d+)$')
	if not ms then return nil, {err = 'GARBLED the last ID of a log is ' .. last:sub(1, 40):gsub('%c', '?')} end
	return {ms = tonumber(ms) > tonumber(arrived) and ms or arrived, n = tonumber(n)}
end

-- Appends an entry, and returns its ID, or an error.
local function append(log, ...)
	local at, err = given[log], nil
	if not at then
		at, err = last_of(log)
		if not at then return err end
		given[log] = at
	end
	local id = redis.pcall('XADD', log, at.ms .. ('-%.0f'):format(at.n + 1), ...)
	if type(id) ~= 'table' then at.n, at.id = at.n + 1, id end
	return id
end

local function numbered()
