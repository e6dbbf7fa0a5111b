-- Stores what a subscriber wants, and tells the owner. From then on the owner begins no batch under older settings: see
-- save.lua.
--
-- KEYS    1 settings   2 states   3 log of the delivery partition
-- ARGV    1 subscriber   2 settings that are replaced, '' for none   3 settings, '' to forget the subscriber
-- Returns the version of the settings, '0' for one that is forgotten, '' if other settings are stored by now
local name = ARGV[1]
local now = call('HGET', KEYS[1], name) or ''
if now == ARGV[3] then return call('HGET', KEYS[2], name .. ':s') or '0' end -- repeated
if now ~= ARGV[2] then return '' end
local version = '0'
if ARGV[3] == '' then
	call('HDEL', KEYS[1], name)
	call('HDEL', KEYS[2], name, name .. ':v', name .. ':s')
else
	call('HSET', KEYS[1], name, ARGV[3])
	local clock = call('TIME') -- so that a state of one that had this name before is never taken for its state
	call('HSETNX', KEYS[2], name .. ':v', ('%.0f'):format(clock[1] * 1000000 + clock[2]))
	version = ('%.0f'):format(call('HINCRBY', KEYS[2], name .. ':s', 1))
end
call('XADD', KEYS[3], '*', 'sub', name)
return version
