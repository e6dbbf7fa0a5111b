-- Takes an operation down for the owner of partition 0, once for each ID.
--
-- KEYS    15 operations
-- Asks    id; op: its JSON; behind: a number that its own is behind
-- Returns its number
local ops = KEYS[15]
local n = tonumber(call('HGET', ops, 'id:' .. ask.id) or '0')
if n > 0 then
	repeated()
	return answer(n)
end
n = math.max(tonumber(call('HGET', ops, 'seq') or '0'), ask.behind) + 1
call('HSET', ops, 'seq', time_text(n), time_text(n), ask.op, 'id:' .. ask.id, time_text(n))
call('ZADD', HEAP, time_now(), 'op:' .. string.format('%016.0f', n))
wake(LOG, OWN, '0')
return answer(n)
