-- Appends records to a partition in order: nothing where they do not fit, else
-- one after the other up to the first that fails. An ID that was sent before is
-- not sent again; so a call whose records all have IDs may be repeated.
--
-- KEYS    1 partition   2... for each record with an ID: what became of that ID
-- ARGV    1 the length that the partition may have, 0 for any
--         2 number of records   3 how long an ID is remembered, in ms
--         then for each record the number of strings that follow, negative if it
--         has an ID, and its fields and values in turns. Without any, nothing but
--         their number is looked at
-- Returns {entry IDs of those that are in; '=' and what its first send returned
--         for an ID that was sent before, error of the first that is not in or ''}
--         The error is 'FULL' when they do not fit
local log, size, n = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local seen = {}
for k = 2, #KEYS do
	local key = KEYS[k]
	if seen[key] == nil then
		seen[key] = redis.call('GET', key)
		if seen[key] then n = n - 1 end
	else
		n = n - 1
	end
end
if size > 0 and n > 0 and redis.call('XLEN', log) + n > size then return { {}, 'FULL' } end

local ids, i, k = {}, 4, 1
while i <= #ARGV do
	local count, key = tonumber(ARGV[i]), nil
	if count < 0 then
		count, k = -count, k + 1
		key = KEYS[k]
	end
	if key and seen[key] then
		ids[#ids + 1] = '=' .. seen[key]
	else
		local id = redis.pcall('XADD', log, '*', unpack(ARGV, i + 1, i + count))
		if type(id) == 'table' then return { ids, id.err } end
		if key then
			redis.call('SET', key, id, 'PX', ARGV[3])
			seen[key] = id
		end
		ids[#ids + 1] = id
	end
	i = i + count + 1
end
return { ids, '' }
