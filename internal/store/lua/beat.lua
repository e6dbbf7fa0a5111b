-- Writes a heartbeat, and reads the membership. PEXPIRE comes first, for it works when the
-- memory of the server is full, and after it the script may write on; see obtain.lua.
--
-- KEYS    1 heartbeat   2 membership
-- ARGV    1 expiry in ms   2 what it tells   3 SHA-1 of the membership that the caller knows, or ''
-- Returns the time by Redis' clock in ms, the membership: '' if there is none, 1 if it is
--         the one that the caller knows, {the text of the error} if it cannot be read
local there = redis.call('PEXPIRE', KEYS[1], ARGV[1])
if there == 0 or redis.pcall('GET', KEYS[1]) ~= ARGV[2] then
	redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[1])
end
local members = redis.pcall('GET', KEYS[2]) or ''
if type(members) == 'table' then
	members = { members.err }
elseif members ~= '' and redis.sha1hex(members) == ARGV[3] then
	members = 1
end
local now = redis.call('TIME')
return { now[1] * 1000 + math.floor(now[2] / 1000), members }
