-- Replaces the states of parked events, each if it is still what the caller has seen, and tells the
-- owner. Repeated, it changes nothing more.
--
-- KEYS    1 ownership hash   2 retry states
-- ARGV    for each event: entry ID, the state as it is stored, the new state
-- Returns for each event 1 replaced, now or before, 0 it is another one, or gone
for _, key in ipairs(KEYS) do redis.call('HLEN', key) end -- a wrong type must show first
redis.call('PEXPIRE', KEYS[1], 1, 'GT') -- see obtain.lua
local out = {}
for i = 1, #ARGV, 3 do
	local stored = redis.call('HGET', KEYS[2], ARGV[i])
	if stored == ARGV[i + 1] then redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 2]) end
	out[#out + 1] = (stored == ARGV[i + 1] or stored == ARGV[i + 2]) and 1 or 0
end
redis.call('HINCRBY', KEYS[1], 'poke', 1)
return out
