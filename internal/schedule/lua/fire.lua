-- Goes on with triggers, and with what catches up: appends facts of logical times, if nothing has happened to them since the
-- caller looked.
--
-- Asks    fence of the owner; fires, of each: id in the heap, its rule and its position as they were seen; to: new position; next: when it
--         goes on in ms, 0 never; over: it is forgotten; omitted: times that are left out; catchUp: id, rule and position of
--         what catches up from now on; source, class (priority), times
-- Returns of each whether nothing had happened
-- Errors  FENCED
local out = {}
for i, f in ipairs(ask.fires) do
	local id, other = f.id, f.catchUp
	local seen = call('HMGET', RULES, id, '@' .. id)
	out[i] = call('ZSCORE', HEAP, id) and (seen[1] or '') == f.rule and (seen[2] or '0') == f.position
	if out[i] then
		for _, t in each(f.times) do emit(f.source, t, 1, 's', '', f.class) end
		if f.over then
			call('HDEL', RULES, id, '@' .. id, '-' .. id)
		else
			call('HSET', RULES, '@' .. id, time_text(f.to))
			if f.omitted > 0 then call('HINCRBY', RULES, '-' .. id, f.omitted) end
		end
		if f.over or f.next == 0 then call('ZREM', HEAP, id) else call('ZADD', HEAP, f.next, id) end
		if other and call('HEXISTS', RULES, other.id) == 0 then
			call('HSET', RULES, other.id, other.rule, '@' .. other.id, other.position)
			call('ZADD', HEAP, time_now(), other.id)
		end
	end
end
return answer(out)
