-- Sets the position of a processor in a partition that was just taken over, and
-- leaves it to the next takeover: its group, the floor, no owner, no suspect,
-- nothing to skip and nothing aside. Repeated it changes nothing more.
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

local found = false
for _, flat in ipairs(redis.call('XINFO', 'GROUPS', log)) do
	if map(flat)['name'] == group then found = true end
end
if not found then return redis.error_reply('FENCED the group of this tenure is gone') end

-- A floor behind the end would look like one of an earlier stream of this name.
local info = map(redis.call('XINFO', 'STREAM', log))
local first, last = redis.call('XRANGE', log, '-', '+', 'COUNT', 1), last_id(log, info)
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
redis.call('HDEL', KEYS[3], 'suspect', 'skip', 'aside')
return to
