-- Writes the state of a parked event. Repeated, it changes nothing more, and a late one undoes no
-- later one: attempts begin and end in order. The group may be gone: the event is not in it.
--
-- KEYS    1 lock   2 retry states
-- ARGV    1 lock value   2 entry ID   3 state
-- Returns 1 it is stored, 2 a later state is, 0 the event is not parked any more
-- Errors  FENCED when the lock does not hold the value
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
	return redis.error_reply('FENCED the partition is not ours')
end
local stored = redis.call('HGET', KEYS[2], ARGV[2])
if not stored then return 0 end

-- Attempt 2 begins before it has failed, and after attempt 1 has failed.
local function step(json)
	local state = cjson.decode(json)
	return 2 * (state['n'] or 0) + (state['run'] and 0 or 1)
end
if step(stored) > step(ARGV[3]) then return 2 end
redis.call('PEXPIRE', KEYS[1], 1, 'GT') -- see obtain.lua
redis.call('HSET', KEYS[2], ARGV[2], ARGV[3])
return 1
