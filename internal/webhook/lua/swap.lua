-- Replaces a field of a hash, unless another call has meanwhile. Repeated, it answers the same. Where the field is what a subscriber
-- wants it tells the owner, which begins no batch under older settings from then on: see save.lua.
--
-- KEYS    1 hash   and of settings: 2 states   3 log of the delivery partition
-- ARGV    1 field, the subscriber   2 what is replaced, '' for nothing   3 what takes its place, '' to remove the field
-- Returns what the field has now, '' for nothing
local name, old, new = unpack(ARGV)
local now = call('HGET', KEYS[1], name) or ''
if now ~= old then return now end
if new == '' then call('HDEL', KEYS[1], name) else call('HSET', KEYS[1], name, new) end
if not KEYS[2] then return new end
if new == '' then
	call('HDEL', KEYS[2], name, name .. ':v', name .. ':s')
else
	if call('HEXISTS', KEYS[2], name .. ':v') == 0 then -- so that a state of one that had this name before is never taken for its state
		local clock = call('TIME')
		call('HSET', KEYS[2], name .. ':v', ('%.0f'):format(clock[1] * 1000000 + clock[2]))
	end
	call('HINCRBY', KEYS[2], name .. ':s', 1)
end
call('XADD', KEYS[3], '*', 'sub', name)
return new
