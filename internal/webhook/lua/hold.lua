-- Says up to where the subscribers of a delivery partition have come in a log. Pins of these are not needed any more, nor are
-- those whose time is over.
--
-- KEYS    1 holders   2 log
-- ARGV    1 the holder   2 the ID, '' if it needs nothing   3... pins
-- Returns the length of the log
if ARGV[2] == '' then call('HDEL', KEYS[1], ARGV[1]) else call('HSET', KEYS[1], ARGV[1], ARGV[2]) end
for i = 3, #ARGV do call('HDEL', KEYS[1], ARGV[i]) end
local all, clock = call('HGETALL', KEYS[1]), call('TIME')
for i = 1, #all, 2 do
	local til = all[i + 1]:match(' (%d+)$')
	if til and tonumber(til) <= clock[1] * 1000 then call('HDEL', KEYS[1], all[i]) end
end
return call('XLEN', KEYS[2])
