-- For scripts that take events out of a partition under a tenure; behind the prelude.

-- Why a tenure is over, nil while it is not.
local function over(log, lock, value, group)
	if redis.call('GET', lock) ~= value then return redis.error_reply('FENCED the partition is not ours') end
	local pending = redis.pcall('XPENDING', log, group)
	if not pending.err then return nil end
	if pending.err:find('NOGROUP', 1, true) then return redis.error_reply('FENCED the group of this tenure is gone') end
	return redis.error_reply(pending.err)
end

-- Stores which entries were taken out. The next owner's group begins at the oldest pending one:
-- those behind it come again there, though they are not in the partition any more.
local function set_aside(log, group, own, ids)
	local oldest, known, all = redis.call('XPENDING', log, group)[2], redis.call('HGET', own, 'aside') or '', {}
	if oldest then
		for id in known:gmatch('%S+') do
			if before(oldest, id) then all[#all + 1] = id end
		end
		for _, id in ipairs(ids) do
			if before(oldest, id) then all[#all + 1] = id end
		end
	end
	local text = table.concat(all, ' ')
	if text ~= known then redis.call('HSET', own, 'aside', text) end
end
