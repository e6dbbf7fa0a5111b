-- Pauses a job, or lets it go on. Repeated it changes nothing more.
--
-- ARGV    1 operation   2 job   3 JSON of the pause, '' to let go   4 number of its triggers here, then these, then its tasks here
-- Returns whether more is held than the call let go: repeat it; -1: the operation is too old
local field, n = 'paused:' .. ARGV[2], tonumber(ARGV[4])
if tonumber(call('HGET', DEFS, 'held:' .. ARGV[2]) or '0') > tonumber(ARGV[1]) then return -1 end
call('HSET', DEFS, 'held:' .. ARGV[2], ARGV[1])
if ARGV[3] ~= '' then
	call('HSET', DEFS, field, ARGV[3])
	for i = 5, 4 + n do call('ZREM', HEAP, ARGV[i]) end
	return 0
end
if call('HDEL', DEFS, field) == 1 then
	for i = 5, 4 + n do
		if call('HEXISTS', RULES, ARGV[i]) == 1 then
			call('ZADD', HEAP, time_now(), ARGV[i]) -- its owner finds out when it goes on
			wake(LOG, OWN, '0')
		end
	end
end
local left = 128
for i = 5 + n, #ARGV do
	local def = def_of(ARGV[i])
	if def and left > 0 then left = left - admit_next(ARGV[i], def, left) end
end
return left > 0 and 0 or 1
