-- Writes a heartbeat. PEXPIRE comes first, for it works when the memory of the
-- server is full, and after it the script may write on; see obtain.lua.
--
-- KEYS    1 heartbeat
-- ARGV    1 expiry in ms   2 what it tells
-- Returns the time by Redis' clock, in ms
local there = redis.call('PEXPIRE', KEYS[1], ARGV[1])
if there == 0 or redis.pcall('GET', KEYS[1]) ~= ARGV[2] then
	redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[1])
end
local now = redis.call('TIME')
return now[1] * 1000 + math.floor(now[2] / 1000)
