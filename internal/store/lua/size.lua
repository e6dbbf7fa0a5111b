-- For scripts that read entries; it stands behind the prelude. A reply inside a script is copied
-- several times: a record of 60 MB keeps the server for seconds.

-- How many entries of a partition a script may read, and the average size of one: about a megabyte
-- of them; all if all together take no more, and 0 if one takes more. The embedded server does not
-- tell, nor does one that does not grant the right to ask.
local function readable(log)
	local length = redis.call('XLEN', log)
	local bytes = redis.REDIS_VERSION and redis.pcall('MEMORY', 'USAGE', log, 'SAMPLES', 100)
	if type(bytes) ~= 'number' or length == 0 then return math.max(length, 1), 0 end
	if bytes <= 1000000 then return length, bytes / length end
	return math.floor(1000000 / bytes * length), bytes / length
end

local copied = 0 -- bytes of what the script has read where it asked first

-- Whether an entry of a partition may be read: it is small, and so is all that was read before.
local function small_enough(log)
	local few, each = readable(log)
	if few == 0 or each > 100000 or copied + each > 1000000 then return false end
	copied = copied + each
	return true
end

-- The last ID that an entry ever had and the number of entries ever appended, nil where that cannot be told. No large
-- entry is read for it: a group at the end tells both, for it lags by all that there was, as it has read nothing. Where
-- the newest entry was deleted it has no lag. The embedded server cannot do without reading, and has small ones.
local function ends(log, own)
	if redis.REDIS_VERSION and redis.call('XLEN', log) > 0 then
		local name = own .. '@' -- no owner has it
		redis.call('XGROUP', 'CREATE', log, name, '$', 'ENTRIESREAD', '0')
		local group = find_group(log, name)
		redis.call('XGROUP', 'DESTROY', log, name)
		local added = tonumber(group['lag'] or '')
		if added ~= 0 or not small_enough(log) then return group['last-delivered-id'], added ~= 0 and added or nil end
	end
	local info = map(redis.call('XINFO', 'STREAM', log))
	return last_id(log, info), info['entries-added']
end

-- Whether no entry up to an ID is left; left is the number of entries. Where they are large a group tells: in front of all it lags
-- by all of them; further back a new group's lag is unknown, or less. With Valkey it is unknown also where an entry behind the ID
-- was deleted.
local function trimmed_past(log, own, id, left)
	if small_enough(log) then return #redis.call('XRANGE', log, '-', id, 'COUNT', 1) == 0 end
	local name = own .. '@' -- of no executor
	redis.call('XGROUP', 'CREATE', log, name, id)
	local lag = find_group(log, name)['lag']
	redis.call('XGROUP', 'DESTROY', log, name)
	return lag == left
end
