-- Takes an operation down for the owner of partition 0, once for each ID.
--
-- KEYS    15 operations   ARGV    1 ID   2 JSON   3 a number that its own is behind
-- Returns its number
local ops = KEYS[15]
local n = call('HGET', ops, 'id:' .. ARGV[1])
if n then
	repeated()
	return tonumber(n)
end
n = math.max(tonumber(call('HGET', ops, 'seq') or '0'), tonumber(ARGV[3])) + 1
call('HSET', ops, 'seq', time_text(n), time_text(n), ARGV[2], 'id:' .. ARGV[1], time_text(n))
call('ZADD', HEAP, time_now(), 'op:' .. string.format('%016.0f', n))
wake(LOG, OWN, '0')
return n
