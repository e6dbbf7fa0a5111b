-- Sets the position of a processor in a partition that was just taken over, and
-- leaves it to the next takeover: its group, the floor, no owner. Repeated it
-- changes nothing more.
--
-- KEYS    1 partition   2 lock   3 ownership hash
-- ARGV    1 the tenure's group   2 lock value
--         3 the new floor: an entry ID, or '$' for the last one; never behind that
-- Returns the new floor
-- Errors  FENCED when the lock does not hold the value or the tenure has no group
local log, group, to = KEYS[1], ARGV[1], ARGV[3]
if redis.call('GET', KEYS[2]) ~= ARGV[2] or redis.call('HGET', KEYS[3], 'tenure') ~= ARGV[2] then
	return redis.error_reply('FENCED the partition is not ours')
end

-- Entry IDs are compared as text: a double cannot hold their 64 bits.
local function before(a, b)
	local am, as = a:match('^(%d+)-?(%d*)$')
	local bm, bs = b:match('^(%d+)-?(%d*)$')
	if as == '' then as = '0' end
	if bs == '' then bs = '0' end
	if #am ~= #bm then return #am < #bm end
	if am ~= bm then return am < bm end
	if #as ~= #bs then return #as < #bs end
	return as < bs
end

local function map(flat)
	local m = {}
	for i = 1, #flat, 2 do m[flat[i]] = flat[i + 1] end
	return m
end

local found = false
for _, flat in ipairs(redis.call('XINFO', 'GROUPS', log)) do
	if map(flat)['name'] == group then found = true end
end
if not found then return redis.error_reply('FENCED the group of this tenure is gone') end

-- A floor behind the end would look like one of an earlier stream of this name.
local info = map(redis.call('XINFO', 'STREAM', log))
local first, newest = redis.call('XRANGE', log, '-', '+', 'COUNT', 1), redis.call('XREVRANGE', log, '+', '-', 'COUNT', 1)
local last = info['last-generated-id']
if not last or last == '' then last = newest[1] and newest[1][1] or '0-0' end
if to == '$' or before(last, to) then to = last end

-- How many entries were ever appended up to the new floor is known at both ends.
local added, read = info['entries-added'], ''
if added and not before(to, last) then
	read = string.format('%.0f', added)
elseif added and first[1] and before(to, first[1][1]) then
	read = string.format('%.0f', added - redis.call('XLEN', log))
end

redis.call('XGROUP', 'DESTROY', log, group)
local made
if read ~= '' then made = redis.pcall('XGROUP', 'CREATE', log, group, to, 'ENTRIESREAD', read) end
if not made or made.err then redis.call('XGROUP', 'CREATE', log, group, to) end
redis.call('HSET', KEYS[3], 'floor', to, 'read', read, 'found', 'reset', 'given', to)
return to
