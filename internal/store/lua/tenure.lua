-- What the scripts need that take events out of a partition under a tenure; it
-- stands behind the prelude.

-- Why a tenure is over, nil while it is not.
local function over(log, lock, value, group)
	if redis.call('GET', lock) ~= value then return redis.error_reply('FENCED the partition is not ours') end
	local pending = redis.pcall('XPENDING', log, group)
	if not pending.err then return nil end
	if pending.err:find('NOGROUP', 1, true) then return redis.error_reply('FENCED the group of this tenure is gone') end
	return redis.error_reply(pending.err)
end

-- Notes entries that were taken out. The group of the next owner begins at the
-- oldest one that is pending: those behind it come again there, and this tells
-- that they are not in the partition any more.
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
