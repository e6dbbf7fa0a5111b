-- Goes on with triggers, and with what catches up: appends facts of logical times, if nothing has happened to them since the
-- caller looked.
--
-- ARGV    1 the owner's fence, then of each: ID in the heap, its rule and its position as they were seen, new position, when it goes
--         on in ms ('' never, 'x' it is over and forgotten), times that are left out; ID, rule and position of what
--         catches up from now on ('' none); source, priority, number of logical times, then these
-- Returns 1 or 0 of each
-- Errors  FENCED
local fenced = fence(OWN, ARGV[1])
if fenced then return fenced end
local out, i = {}, 2
while i <= #ARGV do
	local id, position = ARGV[i], ARGV[i + 3]
	local n, first = tonumber(ARGV[i + 11]), i + 12
	local seen = call('HMGET', RULES, id, '@' .. id)
	if call('ZSCORE', HEAP, id) and (seen[1] or '') == ARGV[i + 1] and (seen[2] or '') == ARGV[i + 2] then
		out[#out + 1] = 1
		for k = first, first + n - 1 do emit(ARGV[i + 9], tonumber(ARGV[k]), 1, 's', '', ARGV[i + 10]) end
		if ARGV[i + 4] == 'x' then
			call('ZREM', HEAP, id)
			call('HDEL', RULES, id, '@' .. id, '-' .. id)
		else
			call('HSET', RULES, '@' .. id, position)
			if ARGV[i + 4] == '' then call('ZREM', HEAP, id) else call('ZADD', HEAP, ARGV[i + 4], id) end
			if ARGV[i + 5] ~= '0' then call('HINCRBY', RULES, '-' .. id, ARGV[i + 5]) end
		end
		if ARGV[i + 6] ~= '' and call('HEXISTS', RULES, ARGV[i + 6]) == 0 then
			call('HSET', RULES, ARGV[i + 6], ARGV[i + 7], '@' .. ARGV[i + 6], ARGV[i + 8])
			call('ZADD', HEAP, time_now(), ARGV[i + 6])
		end
	else
		out[#out + 1] = 0
	end
	i = first + n
end
return out
