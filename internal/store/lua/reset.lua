-- Sets a processor's position in a partition just taken over, and leaves to the next takeover its
-- group, the floor, and no owner, suspect, skip or time. Repeated, it changes nothing more.
--
-- KEYS    1 partition   2 lock   3 ownership hash   4 parked events   5 retry states, and what else is removed: rows and times
--         of tables. Without their rows what is parked and comes again is forgotten; else it is set aside. Or it would count twice
-- ARGV    1 the tenure's group   2 lock value
--         3 the new floor: an entry ID, or '$' for the last one; never behind that
-- Returns the new floor
-- Errors  FENCED when the lock does not hold the value or the tenure has no group
local log, group, to = KEYS[1], ARGV[1], ARGV[3]
if redis.call('GET', KEYS[2]) ~= ARGV[2] or redis.call('HGET', KEYS[3], 'tenure') ~= ARGV[2] then
	return redis.error_reply('FENCED the partition is not ours')
end

if not find_group(log, group) then return redis.error_reply('FENCED the group of this tenure is gone') end

-- A floor behind the end would look like one of an earlier stream of this name.
local facts, left = facts_of(log, group), redis.call('XLEN', log)
if to == '$' or before(facts.last, to) then to = facts.last end

local behind, there = {}, nil
for _, id in ipairs(redis.call('HKEYS', KEYS[5])) do
	if before(to, id) then behind[#behind + 1] = id end
end
if #KEYS > 5 then
	if redis.REDIS_VERSION then there = present(log, group, behind) end
	for _, id in ipairs(behind) do
		if not there and #redis.call('XRANGE', log, id, id) > 0 or there and there[id] then
			redis.call('HDEL', KEYS[4], id)
			redis.call('HDEL', KEYS[5], id)
		end
	end
	redis.call('UNLINK', unpack(KEYS, 6))
	behind = {}
end
redis.call('XGROUP', 'DESTROY', log, group)
redis.call('XGROUP', 'CREATE', log, group, to)
-- How many entries were ever appended up to the new floor is known at both ends: at the
-- beginning the server says that it lags behind by all that are left.
local added, read = facts.added, ''
if added and not before(to, facts.last) then
	read = string.format('%.0f', added)
elseif added and find_group(log, group)['lag'] == left then
	read = string.format('%.0f', added - left)
end
if read ~= '' then redis.pcall('XGROUP', 'SETID', log, group, to, 'ENTRIESREAD', read) end
redis.call('HSET', KEYS[3], 'floor', to, 'read', read, 'found', 'reset', 'given', to,
	'moved', redis.call('HGET', KEYS[3], 'epoch')) -- for an owner before it, see forgotten.lua
redis.call('HDEL', KEYS[3], 'suspect', 'skip', 'aside', 'time')
if #behind > 0 then redis.call('HSET', KEYS[3], 'aside', table.concat(behind, ' ')) end
return to
