-- Trims the oldest entries of a partition that every registered processor has
-- acked, once there are more than size. Leaves at least size entries and every
-- entry that is not acked.
--
-- KEYS    1 partition
-- ARGV    1 size   2 length of an executor ID   3... the registered processors
-- Returns {entries removed, the processor without a group that forbids it or ''}
local log, size, id_length = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local excess = redis.call('XLEN', log) - size
if excess <= 0 or #ARGV < 3 then return { 0, '' } end

-- The first entry that the group still needs; what lies before it is acked.
local function needs(group)
	local pending = redis.call('XPENDING', log, group['name'])
	if pending[1] > 0 then return pending[2] end
	local last = group['last-delivered-id']
	if last == '' then return '0-0' end
	local following = redis.call('XRANGE', log, '(' .. last, '+', 'COUNT', 1)
	return following[1] and following[1][1] or last
end

local groups = {}
for _, flat in ipairs(redis.call('XINFO', 'GROUPS', log)) do groups[#groups + 1] = map(flat) end
local keep
for i = 3, #ARGV do
	local registered = false
	for _, group in ipairs(groups) do
		if is_group_of(ARGV[i], group['name'], id_length) then
			registered = true
			local id = needs(group)
			if not keep or before(id, keep) then keep = id end
		end
	end
	if not registered then return { 0, ARGV[i] } end
end

if map(redis.call('XINFO', 'STREAM', log))['entries-added'] then
	return { redis.call('XTRIM', log, 'MINID', '~', keep, 'LIMIT', excess), '' }
end
-- The embedded server ignores LIMIT and trims exactly: the limit becomes an ID.
local oldest = redis.call('XRANGE', log, '-', '+', 'COUNT', excess + 1)
local first = oldest[excess + 1][1]
if before(first, keep) then keep = first end
return { redis.call('XTRIM', log, 'MINID', keep), '' }
