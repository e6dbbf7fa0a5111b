-- Removes what a processor left in a partition: its consumer groups, also the plain one of Python's
-- runnel, its position, its parked events and, if their keys are named, rows and dead letters. Or leaves
-- the plain group at the processor's position, where Python's runnel goes on. If the last owner did
-- not release, the ownership hash says for an hour that this was done on purpose, for an owner that
-- only hung. Repeated, it changes nothing more.
--
-- KEYS    1 partition   2 lock   3 ownership hash   4 parked events   5 retry states
--         and what else is removed: the outbox, rows and times of tables, dead letters
-- ARGV    1 processor   2 length of an executor ID   3 '1' to leave the plain group   4 '1' if the outbox is among the keys
-- Returns number of consumer groups that were removed
-- Errors  HELD when the lock is held, OUTPUTS when the outbox has something
local log = KEYS[1]
if redis.call('EXISTS', KEYS[2]) == 1 then return redis.error_reply('HELD the partition has an owner') end
if ARGV[4] == '1' and redis.call('XLEN', KEYS[6]) > 0 then return redis.error_reply('OUTPUTS the outbox is not empty') end
local groups, plain, at, read = {}, false, nil, nil
for _, group in ipairs(groups_of(log)) do
	local name = group['name']
	if is_group_of(ARGV[1], name, tonumber(ARGV[2])) then
		groups[#groups + 1] = name
		local pending, position, entries = redis.call('XPENDING', log, name), group['last-delivered-id'], group['entries-read']
		if position == '' then position = '0-0' end
		if pending[1] > 0 then position, entries = preceding(pending[2]), nil end
		if not at or before(position, at) then at, read = position, entries end -- repeat, never skip
	elseif name == ARGV[1] then
		plain = true
	end
end
if ARGV[3] == '1' then
	-- Python makes no group where that of the last partition is there.
	at = at or redis.call('HGET', KEYS[3], 'floor') or (not plain and '0-0')
	if at and plain then redis.call('XGROUP', 'DESTROY', log, ARGV[1]) end
	if at and read and redis.REDIS_VERSION then
		redis.call('XGROUP', 'CREATE', log, ARGV[1], at, 'MKSTREAM', 'ENTRIESREAD', string.format('%.0f', read))
	elseif at then
		redis.call('XGROUP', 'CREATE', log, ARGV[1], at, 'MKSTREAM')
	end
elseif plain then
	redis.call('XGROUP', 'DESTROY', log, ARGV[1])
end
for _, name in ipairs(groups) do redis.call('XGROUP', 'DESTROY', log, name) end
local saved = redis.call('HMGET', KEYS[3], 'epoch', 'open', 'moved')
for k = 3, #KEYS do redis.call('UNLINK', KEYS[k]) end
local moved = saved[1] and saved[2] == '1' and saved[1] or not saved[1] and saved[3]
if moved then
	redis.call('HSET', KEYS[3], 'moved', moved)
	redis.call('PEXPIRE', KEYS[3], 3600000)
end
return #groups
