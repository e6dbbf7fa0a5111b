-- Takes an operation down for the owner of partition 0, once for each ID.
--
-- KEYS    15 operations   ARGV    1 ID   2 JSON
-- Returns its number
local ops = KEYS[15]
local n = call('HGET', ops, 'id:' .. ARGV[1])
if n then return tonumber(n) end
n = call('HINCRBY', ops, 'seq', 1)
call('HSET', ops, n, ARGV[2], 'id:' .. ARGV[1], n)
call('ZADD', HEAP, time_now(), 'op:' .. string.format('%016.0f', n))
wake(LOG, OWN, '0')
return n
