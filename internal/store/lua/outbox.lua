-- Removes from an outbox what has come where it was for, and reads on: one by one, as entries may be large.
--
-- KEYS    1 outbox   2 ownership hash: sent
-- ARGV    1 the ID up to which all has come, or ''   2 the ID to read behind   3 number of entries   4 number of bytes behind
--         which no other entry is read   5 1 if replicas are to confirm what is read
-- Returns the entries, as XRANGE does
if ARGV[1] ~= '' then
	local epoch, number = ARGV[1]:match('^(%d+)%-(%d+)$')
	redis.call('XTRIM', KEYS[1], 'MINID', epoch .. '-' .. string.format('%.0f', number + 1))
end
local found, size, at = {}, 0, ARGV[2]
while #found < tonumber(ARGV[3]) and size < tonumber(ARGV[4]) do
	local entry = redis.call('XRANGE', KEYS[1], '(' .. at, '+', 'COUNT', 1)[1]
	if not entry then break end
	found[#found + 1], at = entry, entry[1]
	for _, text in ipairs(entry[2]) do size = size + #text end
end
if #found > 0 and ARGV[5] == '1' then redis.call('HSET', KEYS[2], 'sent', ARGV[2]) end -- for WAIT, which counts writes
return found
