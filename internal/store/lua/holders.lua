-- Stands before trim.lua and room.lua for logs that have holders: those who keep entries without a consumer group.
--
-- KEYS    behind the others: the holders of the log, a hash: name → the last ID that it does not need, for a pin with
--         a space and the ms until when it counts
local needed_by_groups, holders_key = acked_by_all, table.remove(KEYS)

-- As in retention.lua, holders included: of those who need the oldest entry, one. Where nobody needs any, all may go.
local function acked_by_all(log, groups, id_length, first)
	local keep, who, foreign = needed_by_groups(log, groups, id_length, first)
	if not keep and who then return nil, who, foreign end -- a processor that has not begun
	local holders, clock = redis.call('HGETALL', holders_key), redis.call('TIME')
	for i = 1, #holders, 2 do
		local at, til = holders[i + 1]:match('^(%S+) ?(%d*)$')
		if til == '' or tonumber(til) > clock[1] * 1000 then
			local id = following(at)
			if not keep or before(id, keep) then keep, who, foreign = id, holders[i], false end
		end
	end
	return keep or '18446744073709551615-18446744073709551615', who or '', foreign
end
