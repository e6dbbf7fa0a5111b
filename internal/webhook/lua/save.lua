-- Saves how far subscribers have come, and what has become dead of what they were sent. Versions tell their owner what became
-- of a request whose reply was lost. A state that begins a batch counts on settings, and is not saved if these have changed.
--
-- KEYS    1 ownership hash   2 states   3 dead letters
-- ARGV    1 fence   then for each: the subscriber; the version of its state that is replaced; the version of the settings that
--         it counts on, '' for any; the state; how many dead letters; for each of these how many fields and values, and these
-- Returns for each, as one text: '1' saved, now or by the same request before; 's' there are other settings;
--         'v' another state; '-' no such subscriber
-- Errors  FENCED when the partition has another owner
local fenced = fence(KEYS[1], ARGV[1])
if fenced then return fenced end
call('XLEN', KEYS[3]) -- a wrong type must show before the first write
even_if_full(KEYS[1])
local out, at = {}, 2
while at <= #ARGV do
	local name, version, settings, state, letters = unpack(ARGV, at, at + 4)
	local known, result = call('HMGET', KEYS[2], name .. ':v', name .. ':s'), '1'
	local next, save = ('%.0f'):format(version + 1), false
	if not known[1] then result = '-'
	elseif known[1] == next then result = '1'
	elseif known[1] ~= version then result = 'v'
	elseif settings ~= '' and known[2] ~= settings then result = 's'
	else
		save = true
		call('HSET', KEYS[2], name, state, name .. ':v', next)
	end
	at = at + 5
	for _ = 1, tonumber(letters) do
		local n = tonumber(ARGV[at])
		if save then call('XADD', KEYS[3], '*', unpack(ARGV, at + 1, at + n)) end
		at = at + 1 + n
	end
	out[#out + 1] = result
end
return table.concat(out)
