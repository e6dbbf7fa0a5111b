-- Appends records to a partition in order, all of them or, where they do not fit,
-- none. An ID that was sent before is not sent again; so a call whose records all
-- have IDs may be repeated.
--
-- KEYS    1 partition   2... for each record with an ID: what became of that ID
-- ARGV    1 the length that the partition may have, 0 for any
--         2 number of records   3 how long an ID is remembered, in ms
--         then for each run of records with the same names of fields: how many
--         they are, negative if each has an ID; the number of names; the names;
--         the values of one record after the other. Without any run, nothing but
--         the number of records is looked at
-- Returns the entry IDs, with a space between them; '=' and what its first send
--         returned in the place of an ID that was sent before. 'FULL' and how many
--         of them need room when they do not fit
-- Errors  those of XADD, and then nothing was appended: what may refuse an entry
--         refuses the first, for once it has written a script may write on though
--         the memory is full
local log, argv, call, size, n = KEYS[1], ARGV, redis.call, tonumber(ARGV[1]), tonumber(ARGV[2])
local seen = {}
for k = 2, #KEYS do
	local key = KEYS[k]
	if seen[key] == nil then
		seen[key] = call('GET', key)
		if seen[key] then n = n - 1 end
	else
		n = n - 1
	end
end
if size > 0 and n > 0 and call('XLEN', log) + n > size then return 'FULL ' .. n end

local ids, at, i, k = {}, 0, 4, 1
while i <= #argv do
	local count, names, fields = tonumber(argv[i]), tonumber(argv[i + 1]), {}
	for f = 1, names do fields[2 * f - 1] = argv[i + 1 + f] end
	i = i + 2 + names
	if names == 1 and count > 0 then -- as most are: this way it takes less time
		local name = fields[1]
		for v = i, i + count - 1 do
			at = at + 1
			ids[at] = call('XADD', log, '*', name, argv[v])
		end
		i, count = i + count, 0
	end
	for _ = 1, math.abs(count) do
		for f = 1, names do fields[2 * f] = argv[i + f - 1] end
		local key, id = nil, nil
		if count < 0 then
			k = k + 1
			key = KEYS[k]
			id = seen[key] and '=' .. seen[key]
		end
		if not id then
			id = call('XADD', log, '*', unpack(fields))
			if key then
				call('SET', key, id, 'PX', argv[3])
				seen[key] = id
			end
		end
		at, i = at + 1, i + names
		ids[at] = id
	end
end
return table.concat(ids, ' ')
