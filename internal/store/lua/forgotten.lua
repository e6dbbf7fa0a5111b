-- Finds out whether Redis has forgotten what an owner knew when it lost its partition, as after a
-- restart with an older copy, a failover or FLUSHALL, and stores what. Repeated, it changes nothing
-- more. It stands behind the prelude and position.lua.
--
-- KEYS    for each partition: partition, ownership hash
-- ARGV    for each partition: group of the owner, its epoch, the last ID that it was given, the
--         floor that it found to have gone back while it was the owner, or ''
-- Returns for each partition what was stored of it, '' where nothing is forgotten, or the
--         next owner has told so

-- Whether an entry is in a partition, or was removed from its beginning once it was acked, as
-- floor tells. It is not read, see position.lua.
local function had(log, own, id, floor)
	if redis.call('EXISTS', log) == 0 then return false end
	if not redis.REDIS_VERSION then return #redis.call('XRANGE', log, id, id) > 0 end
	local name, left = own .. '@', redis.call('XLEN', log) -- of no executor
	redis.call('XGROUP', 'CREATE', log, name, '$')
	local last = find_group(log, name)['last-delivered-id']
	local there = present(log, name, { id })[id]
	redis.call('XGROUP', 'DESTROY', log, name)
	if there or not floor or before(floor, id) or before(last, id) then return there end
	return left == 0 or trimmed_past(log, own, id, left)
end

local function forgotten(log, own, group, epoch, given, back)
	local saved = redis.call('HMGET', own, 'epoch', 'given', 'forgotten', 'moved', 'found', 'floor')
	local now, ours, from = tonumber(saved[1] or '') or 0, tonumber(epoch), nil
	if (tonumber(saved[4] or '') or 0) >= ours then return '' end -- reset or removed by an operator
	if now < ours then
		from = saved[2] or '0-0'
	elseif now > ours then
		local told = tonumber((saved[3] or ''):match('"epoch":(%d+)') or '') or 0
		if told > ours then return '' end
		-- Up to it events were given before that takeover, unless the group was destroyed by hand.
		from = back ~= '' and back or saved[5] ~= 'checkpoint' and saved[2]
	elseif back ~= '' then
		from = back
	else
		local found = redis.call('EXISTS', log) == 1 and find_group(log, group)
		from = found and found['last-delivered-id'] -- without one the next takeover tells
	end
	if from == '' then from = '0-0' end -- of the embedded server
	if not from or now >= ours and not before(from, given) then return '' end
	-- All that is known to have been there is there: the position was set back by hand, or its acks are forgotten alone.
	if now >= ours and back == '' and had(log, own, given, saved[6]) then return '' end
	local text = forgotten_text('state', from, given, ours)
	redis.call('HSET', own, 'forgotten', text)
	return text
end

local out = {}
for i = 1, #KEYS / 2 do
	out[i] = forgotten(KEYS[2 * i - 1], KEYS[2 * i], unpack(ARGV, 4 * i - 3, 4 * i))
end
return out
