-- Writes a heartbeat. PEXPIRE comes first, for it works when the memory of the
-- server is full, and after it the script may write on; see obtain.lua.
--
-- KEYS    1 heartbeat
-- ARGV    1 expiry in ms
-- Returns 1
if redis.call('PEXPIRE', KEYS[1], ARGV[1]) == 0 then
	redis.call('SET', KEYS[1], '1', 'PX', ARGV[1])
end
return 1
