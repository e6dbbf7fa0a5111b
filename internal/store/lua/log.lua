-- Looks at a partition. Changes nothing.
--
-- KEYS    1 partition   2 times of the delayed events
-- Returns names and values in turns: length, first (ID of the first entry, or ''),
--         end (the last ID that an entry ever had; '' where entries are too large to be read, and then there is no first
--         either), deleted (the largest ID that was removed by XDEL, or ''), delayed
local length, first, last, deleted = redis.call('XLEN', KEYS[1]), nil, '0-0', ''
if redis.call('EXISTS', KEYS[1]) == 1 then
	if readable(KEYS[1]) < math.min(length, 10) then
		last = ''
	else
		first = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
		local info = map(redis.call('XINFO', 'STREAM', KEYS[1]))
		last, deleted = last_id(KEYS[1], info), info['max-deleted-entry-id'] or ''
	end
	if deleted == '0-0' then deleted = '' end
end
return { 'length', length, 'first', first and first[1] or '', 'end', last, 'deleted', deleted, 'delayed', redis.call('ZCARD', KEYS[2]) }
