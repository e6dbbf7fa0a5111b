-- Removes rows that have ended where no event waits which could see or prolong them; behind quiet.lua. Commits remove those
-- that end by the time of their events.
--
-- KEYS    behind those of quiet.lua: of each table rows and times
-- ARGV    2 how long they have ended, at least, in ms: clocks that go back a little end none too early
-- Returns how many were removed, at most 128 of each table
local now, no = quiet()
if not now then return no or 0 end
local removed, until_then = 0, string.format('%.0f', now - ARGV[2])
for i = 4, #KEYS, 2 do
	local over = redis.call('ZRANGEBYSCORE', KEYS[i + 1], '-inf', until_then, 'LIMIT', 0, 128)
	if #over > 0 then
		redis.call('HDEL', KEYS[i], unpack(over))
		redis.call('ZREM', KEYS[i + 1], unpack(over))
		removed = removed + #over
	end
end
return removed
