-- Appends records to partitions as send.lua does, where all records have one field of
-- the same name and no IDs: nearly all calls, and there what Lua does counts.
--
-- KEYS    the partitions
-- ARGV    1 the length that each partition may have, 0 for any   2 the name of the
--         field   3 how many records each partition gets, at least one: 16 bits each
--         4 … their values, one partition after the other
-- Returns what send.lua returns
local call, size, name, counts, v, out, m, errors = redis.pcall, tonumber(ARGV[1]), ARGV[2], ARGV[3], 4, {}, 0, {}
for i = 1, #KEYS do
	local high, low = counts:byte(2 * i - 1, 2 * i)
	local log, n, length, err = KEYS[i], high * 256 + low, 0, nil
	if size > 0 then
		length = call('XLEN', log)
		if type(length) == 'table' then err, length = length, 0 end
	end
	if err then -- see below
	elseif size > 0 and length + n > size then
		m = m + 1
		out[m] = 'FULL:' .. n
	else
		local id = call('XADD', log, '*', name, ARGV[v])
		if type(id) == 'table' then
			err = id
		else
			m = m + 1
			out[m] = id
			for k = v + 1, v + n - 1 do
				m = m + 1
				out[m] = call('XADD', log, '*', name, ARGV[k])
			end
			if type(out[m]) == 'table' then -- the partition has no more IDs: see send.lua
				errors[#errors + 1] = out[m].err
				for k = m - n + 1, m do out[k] = type(out[k]) == 'table' and '!' or out[k] end
			end
		end
	end
	if err then
		m = m + 1
		out[m] = '!'
		errors[#errors + 1] = err.err
	end
	v = v + n
end
-- A replica wrote nothing; the client must see that, to drop the connection.
if errors[1] and errors[1]:find('READONLY', 1, true) == 1 then return redis.error_reply(errors[1]) end
return {table.concat(out, ' '), unpack(errors)}
