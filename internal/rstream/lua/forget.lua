-- Removes what a processor left in a partition: its consumer groups, its position,
-- its parked events and, if their key is named, its dead letters. Repeated it
-- changes nothing more.
--
-- KEYS    1 partition   2 lock   3 ownership hash   4 parked events   5 retry states
--         6 dead letters, or none
-- ARGV    1 processor   2 length of an executor ID
-- Returns number of consumer groups that were removed
-- Errors  HELD when somebody holds the lock
local log = KEYS[1]
if redis.call('EXISTS', KEYS[2]) == 1 then return redis.error_reply('HELD the partition has an owner') end
local groups = {}
for _, group in ipairs(groups_of(log)) do
	if is_group_of(ARGV[1], group['name'], tonumber(ARGV[2])) then groups[#groups + 1] = group['name'] end
end
for _, name in ipairs(groups) do redis.call('XGROUP', 'DESTROY', log, name) end
for k = 3, #KEYS do redis.call('DEL', KEYS[k]) end
return #groups
