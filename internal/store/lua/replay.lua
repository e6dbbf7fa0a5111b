-- Appends the event of a dead letter to a partition, without the letter's own fields, and removes
-- the dead letter. Repeated, it changes nothing more.
--
-- KEYS    1 dead letters   2 partition
-- ARGV    1 ID of the dead letter   2 the length that the partition may have, 0 for
--         any   3... fields and values that the event gets where it does not have them
-- Returns {ID of the new entry}, {} when there is no such dead letter
-- Errors  FULL when the partition has no room, WIDE when the event has too many
--         fields for a script, EMPTY when it has none
local letter = redis.call('XRANGE', KEYS[1], ARGV[1], ARGV[1])[1]
if not letter then return {} end
local fields, there = {}, {}
for i = 1, #letter[2], 2 do
	local name = letter[2][i]
	if name == '__dead.packed' then return redis.error_reply('WIDE the event has too many fields') end
	if name:sub(1, 7) ~= '__dead.' then
		fields[#fields + 1], fields[#fields + 2], there[name] = name, letter[2][i + 1], true
	end
end
if #fields == 0 then return redis.error_reply('EMPTY the dead letter has no event') end
for i = 3, #ARGV, 2 do
	if not there[ARGV[i]] then fields[#fields + 1], fields[#fields + 2] = ARGV[i], ARGV[i + 1] end
end
local size, length = tonumber(ARGV[2]), redis.call('XLEN', KEYS[2])
if size > 0 and length >= size then return redis.error_reply('FULL ' .. length .. ' entries are there') end
local id = redis.call('XADD', KEYS[2], '*', unpack(fields))
redis.call('XDEL', KEYS[1], ARGV[1])
return { id }
