-- For scripts that take events out of a partition under a tenure; behind the prelude.

-- Why a tenure is over, nil while it is not.
local function over(log, lock, value, group)
	if redis.call('GET', lock) ~= value then return redis.error_reply('FENCED the partition is not ours') end
	local pending = redis.pcall('XPENDING', log, group)
	if not pending.err then return nil end
	if pending.err:find('NOGROUP', 1, true) then return redis.error_reply('FENCED the group of this tenure is gone') end
	return redis.error_reply(pending.err)
end

-- Whether a tenure reads by position: its group has nothing pending, and what lies behind the floor and is not set
-- aside is still in the partition.
local function by_position(own, value)
	local reach = redis.call('HGET', own, 'reach')
	return reach and reach:match(' (.*)$') == value
end

local at_begin -- the floor and what was set aside

-- Takes an entry out of the partition, unless that was done before. The caller sets aside what was taken out.
local function take_out(log, group, own, value, id)
	if not by_position(own, value) then return redis.call('XACK', log, group, id) == 1 end
	redis.call('HDEL', own, '') -- it works when the memory of the server is full, see obtain.lua
	if not at_begin then -- of the script: it takes out each entry once
		at_begin = { floor = redis.call('HGET', own, 'floor'), aside = words(redis.call('HGET', own, 'aside') or '') }
	end
	return before(at_begin.floor, id) and not at_begin.aside[id]
end

-- Up to where a group was read.
local function following_group(log, group)
	local found = find_group(log, group)
	local last = found and found['last-delivered-id'] or ''
	return last ~= '' and last or '0-0'
end

-- Stores which entries were taken out. The next owner's group begins at the oldest pending one:
-- those behind it come again there, though they are not in the partition any more. By position that is what
-- lies behind the floor.
local function set_aside(log, group, own, value, ids)
	local known, all = redis.call('HGET', own, 'aside') or '', {}
	local position, oldest = by_position(own, value), nil
	if position then
		oldest = redis.call('HGET', own, 'floor')
	else
		oldest = redis.call('XPENDING', log, group)[2]
	end
	-- What was set aside for this owner and came again is pending, too; or it is still to come.
	local kept = oldest
	if not kept and known ~= '' then kept = following_group(log, group) end
	for id in known:gmatch('%S+') do
		if kept and (before(kept, id) or oldest and not position and id == oldest) then all[#all + 1] = id end
	end
	for _, id in ipairs(ids) do
		if oldest and before(oldest, id) then all[#all + 1] = id end
	end
	local text = table.concat(all, ' ')
	if text ~= known then redis.call('HSET', own, 'aside', text) end
end
