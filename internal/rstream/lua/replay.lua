-- Appends the event of a dead letter to a partition, without what only the dead
-- letter has, and removes the dead letter. Repeated it changes nothing more.
--
-- KEYS    1 dead letters   2 partition
-- ARGV    1 ID of the dead letter   2... fields and values that the event gets where
--         it does not have them
-- Returns {ID of the new entry}, {} when there is no such dead letter
-- Errors  PACKED when the event has too many fields for a script
local letter = redis.call('XRANGE', KEYS[1], ARGV[1], ARGV[1])[1]
if not letter then return {} end
redis.call('XLEN', KEYS[2]) -- a wrong type is to be seen before the first write
local fields, there = {}, {}
for i = 1, #letter[2], 2 do
	local name = letter[2][i]
	if name == '__dead.packed' then return redis.error_reply('PACKED the event has too many fields') end
	if name:sub(1, 7) ~= '__dead.' then
		fields[#fields + 1], fields[#fields + 2], there[name] = name, letter[2][i + 1], true
	end
end
for i = 2, #ARGV, 2 do
	if not there[ARGV[i]] then fields[#fields + 1], fields[#fields + 2] = ARGV[i], ARGV[i + 1] end
end
if #fields == 0 then return redis.error_reply('PACKED the dead letter has no event') end
local id = redis.call('XADD', KEYS[2], '*', unpack(fields))
redis.call('XDEL', KEYS[1], ARGV[1])
return { id }
