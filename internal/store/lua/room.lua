-- Makes room in a full partition: removes the oldest entries that every consumer group and every
-- registered processor has acked; if told so and there still is no room, also the oldest that a
-- processor needs. These count as lost for each processor that they were not delivered to; one that
-- was given them processes them, or counts them itself; so does one that is read by position, of which Redis does not
-- know what was read, if it knows the number of its position. Does nothing if there is room, and so may
-- be repeated.
--
-- KEYS    1 partition   2... the processors' ownership hashes: floor, lost, tenure, reach, open, read
-- ARGV    1 size   2 number of entries that need room   3 '1' to drop
--         4 length of an executor ID   5... the registered processors
-- Returns {length, acked entries removed, entries dropped, who needs the oldest entry
--         or '', 0 if that is a processor without a group, 1 if it has one, 2 if it is
--         the consumer group of no registered processor}
local log, size, wanted = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local id_length = tonumber(ARGV[4])
local length = redis.call('XLEN', log)
if length + wanted <= size then return { length, 0, 0, '', 0 } end

local groups, removed = groups_of(log), 0
local lost = {}
for i = 2, #KEYS do lost[i] = redis.call('HMGET', KEYS[i], 'lost', 'floor', 'tenure', 'reach', 'open', 'read') end
local keep, holder, foreign = acked_by_all(log, groups, id_length, 5)
local kind = foreign and 2 or keep and 1 or 0
if keep then
	-- More than is needed, so that not every send has to come here.
	removed = remove(log, keep, length - math.min(math.floor(size * 3 / 4), size - wanted))
	length = length - removed
end
local excess = length + wanted - size
if excess <= 0 or ARGV[3] ~= '1' then
	return { length, removed, 0, holder or '', kind }
end

-- Of several groups of a processor the one that is furthest behind counts.
local at = {}
for _, group in ipairs(groups) do
	local processor = processor_of(group['name'], id_length)
	if group['last-delivered-id'] == '' then group['last-delivered-id'] = '0-0' end
	local known = processor and at[processor]
	if processor and (not known or before(group['last-delivered-id'], known['last-delivered-id'])) then at[processor] = group end
end
local positions = {}
for i = 5, #ARGV do
	local group, saved = at[ARGV[i]], lost[i - 3]
	local counts = redis.REDIS_VERSION and saved[5] == '1' and saved[4] and saved[4]:match(' (.*)$') == saved[3]
		and tonumber(saved[6] or '') -- else it cannot tell: what it has read and not committed counts as well
	positions[i - 4] = { counts = counts, own = KEYS[i - 3], group = group, last = group and group['last-delivered-id'] or saved[2] or '0-0', n = 0 }
end
table.sort(positions, function(a, b) return before(a.last, b.last) end)

-- The oldest entries go in steps, each up to the next position: those of a step were not delivered
-- to processors that stand before it. So no entry is read.
local most = math.min(excess, 1000)
local dropped = 0
for i = 1, #positions + 1 do
	local position = positions[i]
	if dropped < most and not (position and i > 1 and position.last == positions[i - 1].last) then
		local n = position and remove(log, following(position.last), most - dropped)
			or redis.call('XTRIM', log, 'MAXLEN', length - most)
		dropped = dropped + n
		for k = 1, i - 1 do positions[k].n = positions[k].n + n end
	end
end
for _, position in ipairs(positions) do
	local n, group = position.n, position.group
	if n > 0 and not position.counts then
		redis.call('HINCRBY', position.own, 'lost', n)
		if group and group['entries-read'] then -- else the server's own lag counts them for ever
			redis.call('XGROUP', 'SETID', log, group['name'], position.last, 'ENTRIESREAD',
				string.format('%.0f', group['entries-read'] + n))
		end
	end
end
return { length - dropped, removed, dropped, holder or '', kind }
