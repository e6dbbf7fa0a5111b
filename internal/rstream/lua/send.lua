-- Appends records to partitions, in order. Of each partition all of them or, where
-- they do not fit, none. An ID that was sent before is not sent again; so a call
-- whose records all have IDs may be repeated.
--
-- KEYS    for each partition: the partition, and for each of its records with an ID
--         what became of that ID
-- ARGV    for each partition: the number of its keys; that of its arguments behind
--         this one; the length that it may have, 0 for any; number of records; how
--         long an ID is remembered, in ms;
--         then for each run of records with the same names of fields: how many
--         they are, negative if each has an ID; the number of names; the names;
--         the values of one record after the other. Without any run, nothing but
--         the number of records is looked at
-- Returns for each partition the entry IDs, with a space between them; '=' and what
--         its first send returned in the place of an ID that was sent before. 'FULL'
--         and how many of them need room when they do not fit. '!' and an error when
--         they are refused, and then none was appended: what may refuse an entry
--         refuses the first, for once it has written a script may write on though
--         the memory is full
local argv, call, at, k = ARGV, redis.pcall, 1, 1

-- The next argument, a number.
local function number()
	at = at + 1
	return tonumber(argv[at - 1])
end

-- Appends to a partition. The keys first to last are of its IDs, and its arguments
-- end before stop.
local function send(log, first, last, stop)
	local size, n, window, seen = number(), number(), number(), {}
	for key = first, last do
		local name = KEYS[key]
		if seen[name] == nil then
			seen[name] = call('GET', name)
			if type(seen[name]) == 'table' then return '!' .. seen[name].err end
			if seen[name] then n = n - 1 end
		else
			n = n - 1
		end
	end
	local length = size > 0 and n > 0 and call('XLEN', log) or 0
	if type(length) == 'table' then return '!' .. length.err end
	if size > 0 and n > 0 and length + n > size then return 'FULL ' .. n end

	local ids, m, key = {}, 0, first - 1
	while at < stop do
		local count, names, fields = number(), number(), {}
		for f = 1, names do fields[2 * f - 1] = argv[at + f - 1] end
		at = at + names
		if names == 1 and count > 0 then -- as most are: this way it takes less time
			local name = fields[1]
			for v = at, at + count - 1 do
				m = m + 1
				ids[m] = call('XADD', log, '*', name, argv[v])
			end
			if type(ids[m - count + 1]) == 'table' then return '!' .. ids[m - count + 1].err end
			at, count = at + count, 0
		end
		for _ = 1, math.abs(count) do
			for f = 1, names do fields[2 * f] = argv[at + f - 1] end
			local once, id = nil, nil
			if count < 0 then
				key = key + 1
				once = KEYS[key]
				id = seen[once] and '=' .. seen[once]
			end
			if not id then
				id = call('XADD', log, '*', unpack(fields))
				if type(id) == 'table' then return '!' .. id.err end
				if once then
					redis.call('SET', once, id, 'PX', window)
					seen[once] = id
				end
			end
			m, at = m + 1, at + names
			ids[m] = id
		end
	end
	return table.concat(ids, ' ')
end

local out = {}
while at <= #argv do
	local keys, arguments = number(), number()
	local stop = at + arguments
	out[#out + 1] = send(KEYS[k], k + 1, k + keys - 1, stop)
	at, k = stop, k + keys
end
return out
