-- Removes rows that have ended where neither an event waits which could see or prolong them, nor the end of another row, for
-- which a function is called; behind quiet.lua. Commits remove those that end by the time of their events.
--
-- KEYS    behind those of quiet.lua: the times of each table whose ends call a function; of each other one rows and times
-- ARGV    2 how long they have ended, at least, in ms: clocks that go back a little end none too early   3 number of
--         tables whose ends call a function
-- Returns how many were removed, at most 128 of each table
local now, no = quiet()
if not now then return no or 0 end
local removed, until_then, first = 0, now - ARGV[2], 4 + tonumber(ARGV[3])
for i = 4, first - 1 do
	local due = redis.call('ZRANGE', KEYS[i], 0, 0, 'WITHSCORES')
	if due[2] then until_then = math.min(until_then, tonumber(due[2])) end
end
until_then = string.format('%.0f', until_then)
for i = first, #KEYS, 2 do
	local over = redis.call('ZRANGEBYSCORE', KEYS[i + 1], '-inf', until_then, 'LIMIT', 0, 128)
	if #over > 0 then
		redis.call('HDEL', KEYS[i], unpack(over))
		redis.call('ZREM', KEYS[i + 1], unpack(over))
		removed = removed + #over
	end
end
return removed
