-- Says up to where the subscribers of a delivery partition have come in a log, as its owner of an epoch knows it; one of a former
-- epoch says nothing any more. Pins of these subscribers are not needed any more, nor are those whose time is over.
--
-- KEYS    1 holders   2 log
-- ARGV    1 the partition   2 its epoch   3 the ID, '' if it needs nothing   4... pins
-- Returns the length of the log, 0 to a former owner
even_if_full(KEYS[1]) -- what it lets go takes more
local all, clock = call('HGETALL', KEYS[1]), call('TIME')
for i = 1, #all, 2 do
	local n, epoch = all[i]:match('^deliver:(%d+):(%d+)$')
	if n == ARGV[1] and tonumber(epoch) > tonumber(ARGV[2]) then return 0 end
	local til = all[i + 1]:match(' (%d+)$')
	if til and tonumber(til) <= clock[1] * 1000 or n == ARGV[1] and epoch ~= ARGV[2] then call('HDEL', KEYS[1], all[i]) end
end
local holder = 'deliver:' .. ARGV[1] .. ':' .. ARGV[2]
if ARGV[3] == '' then call('HDEL', KEYS[1], holder) else call('HSET', KEYS[1], holder, ARGV[3]) end
for i = 4, #ARGV do call('HDEL', KEYS[1], ARGV[i]) end
return call('XLEN', KEYS[2])
