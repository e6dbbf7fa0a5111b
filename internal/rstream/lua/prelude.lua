-- What several scripts need; it stands before them when they are loaded.

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

-- A reply of names and values in turns, as a table by name.
local function map(flat)
	local m = {}
	for i = 1, #flat, 2 do m[flat[i]] = flat[i + 1] end
	return m
end

-- Whether a consumer group is of one of a processor's owners. A processor's name
-- is plain text, never a pattern: 'my-proc' has a '-'.
local function is_group_of(processor, name, id_length)
	local prefix = processor .. '@'
	return #name == #prefix + id_length and name:sub(1, #prefix) == prefix and not name:find('@', #prefix + 1, true)
end

-- The last ID that a partition ever had, from its XINFO; the embedded server does
-- not always tell.
local function last_id(log, info)
	local last = info['last-generated-id']
	if last and last ~= '' then return last end
	local newest = redis.call('XREVRANGE', log, '+', '-', 'COUNT', 1)
	return newest[1] and newest[1][1] or '0-0'
end
