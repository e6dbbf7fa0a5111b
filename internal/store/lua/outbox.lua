-- Removes from an outbox what has come where it was for, and reads on.
--
-- KEYS    1 outbox   2 ownership hash: sent
-- ARGV    1 the ID up to which all has come, or ''   2 the ID to read behind   3 number of entries   4 1 if replicas
--         are to confirm what is read
-- Returns the entries, as XRANGE does
if ARGV[1] ~= '' then
	local epoch, number = ARGV[1]:match('^(%d+)%-(%d+)$')
	redis.call('XTRIM', KEYS[1], 'MINID', epoch .. '-' .. string.format('%.0f', number + 1))
end
local found = redis.call('XRANGE', KEYS[1], '(' .. ARGV[2], '+', 'COUNT', ARGV[3])
if #found > 0 and ARGV[4] == '1' then redis.call('HSET', KEYS[2], 'sent', ARGV[2]) end -- for WAIT, which counts writes
return found
