-- Looks at a partition as one processor sees it. Changes nothing.
--
-- KEYS    1 partition   2 lock   3 ownership hash
-- ARGV    1 processor   2 length of an executor ID
-- Returns {lock value or '', its remaining life in ms, epoch or 0, group or '',
--         last delivered ID, floor, pending, undelivered or -1 when it must be
--         counted, length, last ID}
local log, prefix, id_length = KEYS[1], ARGV[1] .. '@', tonumber(ARGV[2])

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

-- The ID up to which everything is acked, as takeover.lua finds it.
local function floor_of(group)
	if group['pending'] == 0 then return group['last-delivered-id'] end
	local pending = redis.call('XPENDING', log, group['name'])
	if pending[1] == 0 then return group['last-delivered-id'] end
	local previous = redis.call('XREVRANGE', log, '(' .. pending[2], '-', 'COUNT', 1)
	return previous[1] and previous[1][1] or '0-0'
end

local held = redis.call('GET', KEYS[2]) or ''
local left = redis.call('PTTL', KEYS[2])
local saved = redis.call('HMGET', KEYS[3], 'epoch', 'floor')
local epoch, checkpoint = tonumber(saved[1] or '') or 0, saved[2] or '0-0'
if redis.call('EXISTS', log) == 0 then return { held, left, epoch, '', checkpoint, checkpoint, 0, 0, 0, '0-0' } end

-- Several groups of one processor: the owner's, else the one that is furthest
-- behind, for there a takeover begins.
local group, floor
for _, flat in ipairs(redis.call('XINFO', 'GROUPS', log)) do
	local g = map(flat)
	local name = g['name']
	if #name == #prefix + id_length and name:sub(1, #prefix) == prefix and not name:find('@', #prefix + 1, true) then
		if g['last-delivered-id'] == '' then g['last-delivered-id'] = '0-0' end
		local f = floor_of(g)
		if name == prefix .. held:sub(1, id_length) then
			group, floor = g, f
			break
		end
		if not floor or before(f, floor) then group, floor = g, f end
	end
end

local length = redis.call('XLEN', log)
local first = redis.call('XRANGE', log, '-', '+', 'COUNT', 1)
local newest = redis.call('XREVRANGE', log, '+', '-', 'COUNT', 1)
local last = map(redis.call('XINFO', 'STREAM', log))['last-generated-id']
if not last or last == '' then last = newest[1] and newest[1][1] or '0-0' end
if not group and before(last, checkpoint) then checkpoint = '0-0' end -- of an earlier stream of this name
local delivered = group and group['last-delivered-id'] or checkpoint

-- The server's own lag counts entries that were removed unread, and is none after
-- some removals; without entries-read (the embedded server) it is the length.
local undelivered = -1
if length == 0 or not before(delivered, newest[1][1]) then
	undelivered = 0
elseif before(delivered, first[1][1]) then
	undelivered = length
elseif group and group['entries-read'] and group['lag'] and group['lag'] > 0 and group['lag'] < length then
	undelivered = group['lag']
end
return { held, left, epoch, group and group['name'] or '', delivered, floor or checkpoint,
	group and group['pending'] or 0, undelivered, length, last }
