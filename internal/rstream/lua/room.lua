-- Makes room in a full partition: removes the oldest entries that every
-- registered processor has acked, and, if told so and there still is no room, the
-- oldest ones whoever needs them. These are counted for each processor that they
-- had not been delivered to; one that they had been delivered to processes them,
-- or counts them itself. Does nothing where there is room, and so may be repeated.
--
-- KEYS    1 partition   2... the processors' ownership hashes: floor, lost
-- ARGV    1 size   2 number of entries that need room   3 '1' to drop
--         4 length of an executor ID   5... the registered processors
-- Returns {length, acked entries removed, entries dropped, processor that needs
--         the oldest entry or '', 1 if it has a group}
local log, size, wanted = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local id_length, page = tonumber(ARGV[4]), 100
local length = redis.call('XLEN', log)
if length + wanted <= size then return { length, 0, 0, '', 0 } end

local groups, removed = groups_of(log), 0
local lost = {}
for i = 2, #KEYS do lost[i] = redis.call('HMGET', KEYS[i], 'lost', 'floor') end
local keep, holder = acked_by_all(log, groups, id_length, 5)
if keep then
	-- More than is needed, so that not every send has to come here.
	removed = remove(log, keep, length - math.min(math.floor(size * 3 / 4), size - wanted))
	length = length - removed
end
local excess = length + wanted - size
if excess <= 0 or ARGV[3] ~= '1' then
	return { length, removed, 0, holder or '', keep and 1 or 0 }
end

-- The oldest entries, a page at a time: they may be large.
local oldest, from = {}, '-'
while #oldest < excess and #oldest < 1000 do
	local entries = redis.call('XRANGE', log, from, '+', 'COUNT', math.min(page, excess - #oldest))
	for _, entry in ipairs(entries) do oldest[#oldest + 1] = entry[1] end
	if #entries == 0 then break end
	from = '(' .. oldest[#oldest]
end
local dropped = #oldest

-- How many of those to drop stand behind an ID.
local function undelivered(id)
	local n = 0
	while n < dropped and before(id, oldest[dropped - n]) do n = n + 1 end
	return n
end

for i = 5, #ARGV do
	local last, group = nil, nil -- of several groups the one that is furthest behind
	for _, g in ipairs(groups) do
		if is_group_of(ARGV[i], g['name'], id_length) then
			local id = g['last-delivered-id']
			if id == '' then id = '0-0' end
			if not last or before(id, last) then last, group = id, g end
		end
	end
	local n = undelivered(last or lost[i - 3][2] or '0-0')
	if n > 0 then
		redis.call('HINCRBY', KEYS[i - 3], 'lost', n)
		if group and group['entries-read'] then -- else the server's own lag counts them for ever
			redis.call('XGROUP', 'SETID', log, group['name'], last, 'ENTRIESREAD',
				string.format('%.0f', group['entries-read'] + n))
		end
	end
end
dropped = redis.call('XTRIM', log, 'MAXLEN', length - dropped)
return { length - dropped, removed, dropped, holder or '', keep and 1 or 0 }
