-- Replaces a value that is still the one the caller read. A repetition answers as the first call.
--
-- KEYS    1 the value
-- ARGV    1 what it must be, '' for absent   2 what it becomes
-- Returns 1 it is the new value, 0 it was another one
local stored = redis.call('GET', KEYS[1]) or ''
if stored ~= ARGV[1] and stored ~= ARGV[2] then return 0 end
if stored ~= ARGV[2] then
	redis.call('PEXPIRE', KEYS[1], 1, 'GT') -- see obtain.lua
	redis.call('SET', KEYS[1], ARGV[2])
end
return 1
