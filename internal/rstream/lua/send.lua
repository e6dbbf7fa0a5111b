-- Appends records to a partition in order, and stops at the first that fails.
--
-- KEYS    1 partition
-- ARGV    for each record: the number of strings that follow, then its fields
--         and values in turns
-- Returns {entry IDs of those that are in, error of the first that is not or ''}
local ids, i = {}, 1
while i <= #ARGV do
	local n = tonumber(ARGV[i])
	local id = redis.pcall('XADD', KEYS[1], '*', unpack(ARGV, i + 1, i + n))
	if type(id) == 'table' then return { ids, id.err } end
	ids[#ids + 1] = id
	i = i + n + 1
end
return { ids, '' }
