-- Looks at heartbeats, and bounds their remaining life, so that a step of the
-- server's clock cannot keep a dead executor's alive.
--
-- KEYS    heartbeats
-- ARGV    1 the longest life in ms
-- Returns the remaining life of each in ms, negative for one that is gone
local out = {}
for i, beat in ipairs(KEYS) do
	out[i] = redis.call('PTTL', beat)
	if out[i] == -1 or out[i] > tonumber(ARGV[1]) then -- without an end, or too late
		redis.call('PEXPIRE', beat, ARGV[1])
		out[i] = redis.call('PTTL', beat)
	end
end
return out
