-- Appends records to partitions, in order: to each all of them or, if they do not fit, none. An ID
-- that was sent before is not sent again, so a call whose records all have IDs may be repeated. A
-- partition may come again, for another sender: it is then as the one before left it.
--
-- KEYS    for each partition: the partition, and for each of its records with an ID
--         what became of that ID
-- ARGV    the length that each partition may have, 0 for any; how long an ID is
--         remembered, in ms; the number of shapes, which are the names of a record's
--         fields; for each shape: the number of names, and the names;
--         then for each partition: the number of its IDs; that of its records; that
--         of its arguments behind this one; for each run of records of one shape: how
--         many they are, negative if each has an ID; the shape, from 1; the values of
--         one record after the other. Without any run nothing is appended, and only
--         room is looked for
-- Returns a text, and errors. The text has for each partition, with a space between
--         all: the entry IDs, or '.' where it has no run; '=' and what its first send
--         returned in the place of an ID that was sent before. 'FULL:' and how many
--         of them need room when they do not fit. '!' when they are refused with the
--         next of the errors, and then none was appended: what may refuse an entry
--         refuses the first, for once it has written a script may write on though
--         the memory is full. But where a partition runs out of IDs, those that are in
--         have theirs, and each of the others has '!', with one error for all.
-- Calls take most of the time, then texts that Lua makes: hence one text for all.
local argv, call, at, k, out, m = ARGV, redis.pcall, 1, 1, {}, 0

-- The next argument, a number.
local function number()
	at = at + 1
	return tonumber(argv[at - 1])
end

local size, window, shapes = number(), number(), {}
for s = 1, number() do
	local names, fields = number(), {}
	for f = 1, names do fields[2 * f - 1] = argv[at + f - 1] end
	shapes[s], at = {names, fields}, at + names
end

-- Looks up n IDs from key k on. Returns what was sent before, by key, and how many; or an error.
local function sent_before(n)
	local seen, again = {}, 0
	for key = k, k + n - 1 do
		local name = KEYS[key]
		if seen[name] == nil then
			seen[name] = call('GET', name)
			if type(seen[name]) == 'table' then return nil, seen[name] end
			if seen[name] then
				again = again + 1
				local renewed = call('PEXPIRE', name, window) -- a write, for WAIT; see durably
				if type(renewed) == 'table' then return nil, renewed end
			end
		else
			again = again + 1
		end
	end
	return seen, again
end

-- Appends n records to a partition, of which some have an ID from the key k on.
-- Their arguments end before stop. Returns the error with which they are refused.
local function send(log, ids, n, stop)
	local seen
	if ids > 0 then
		local again
		seen, again = sent_before(ids)
		if not seen then return again end
		n = n - again
	end
	if size > 0 and n > 0 then
		local length = call('XLEN', log)
		if type(length) == 'table' then return length end
		if length + n > size then
			m = m + 1
			out[m] = 'FULL:' .. n
			return
		end
	end
	if at == stop then
		m = m + 1
		out[m] = '.'
	end
	while at < stop do
		local count, shape = number(), shapes[number()]
		local names, fields = shape[1], shape[2]
		local name = fields[1]
		if names == 1 and count > 0 then -- as most are: this way it takes less time
			local first = m + 1
			for v = at, at + count - 1 do
				m = m + 1
				out[m] = call('XADD', log, '*', name, argv[v])
			end
			if type(out[m]) == 'table' then
				local err = out[m]
				while m >= first and type(out[m]) == 'table' do
					out[m] = nil
					m = m - 1
				end
				return err
			end
			at, count = at + count, 0
		end
		for _ = 1, math.abs(count) do
			for f = 1, names do fields[2 * f] = argv[at + f - 1] end
			local once, id = nil, nil
			if count < 0 then
				once, k = KEYS[k], k + 1
				id = seen[once] and '=' .. seen[once]
			end
			if not id then
				id = call('XADD', log, '*', unpack(fields))
				if type(id) == 'table' then return id end
				if once then
					redis.call('SET', once, id, 'PX', window)
					seen[once] = id
				end
			end
			m, at = m + 1, at + names
			out[m] = id
		end
	end
end

local last, errors = #argv, {}
while at <= last do
	local log, ids, n, arguments = KEYS[k], number(), number(), number()
	local stop, before = at + arguments, m
	k = k + 1
	local next = k + ids
	local err = send(log, ids, n, stop)
	if err then
		repeat
			m = m + 1
			out[m] = '!'
		until m == before + 1 or m == before + n
		errors[#errors + 1] = err.err
	end
	at, k = stop, next
end
-- A replica wrote nothing; the client must see that, to drop the connection.
if errors[1] and errors[1]:find('READONLY', 1, true) == 1 then return redis.error_reply(errors[1]) end
return {table.concat(out, ' '), unpack(errors)}
