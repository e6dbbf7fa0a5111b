-- Acks entries, and counts those removed while they were pending. Repeated, it changes nothing.
--
-- KEYS    1 partition   2 ownership hash: gone
-- ARGV    1 group   2 how many were removed   3... their IDs, then the other IDs
-- Returns number of entries that were acked; 0 where the group is gone
redis.call('HLEN', KEYS[2]) -- a wrong type must show before the first write
local acked, gone = 0, 0
for i = 3, #ARGV do
	if i - 2 <= tonumber(ARGV[2]) then -- XACK does not count what was removed, on the embedded server
		local pending = redis.pcall('XPENDING', KEYS[1], ARGV[1], ARGV[i], ARGV[i], 1)
		if not pending.err then gone = gone + #pending end
	end
	acked = acked + redis.call('XACK', KEYS[1], ARGV[1], ARGV[i])
end
if gone > 0 then redis.call('HINCRBY', KEYS[2], 'gone', gone) end
return acked
