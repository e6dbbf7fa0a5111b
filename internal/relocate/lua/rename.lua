-- Gives keys their other names, all or none, and leaves a fence where something
-- must not be written any more: a string, on which every command of a stream or a
-- hash fails. Repeated it does nothing but set fences that are gone.
--
-- KEYS    the names of each key, from and to; then locks
-- ARGV    1 how many keys   2 the text of a fence
--         3 … for each key: '' no fence, 'fence', 'log' a fence, and what came in spite
--         of it is appended to the log that was moved before
-- Returns a text of '0' and '1': which of the keys were there
-- Errors  HELD and the name of a lock that somebody holds, BUSY and the name of a key
--         that is there under both names
local n, text, from, to, there = tonumber(ARGV[1]), ARGV[2], {}, {}, {}
for i = 2 * n + 1, #KEYS do
	if redis.call('EXISTS', KEYS[i]) == 1 then return redis.error_reply('HELD ' .. KEYS[i]) end
end

-- The type of a key, 'none' if it is not there, 'fence' for a fence.
local function look(key)
	local kind = redis.call('TYPE', key).ok
	if kind == 'string' and redis.call('GETRANGE', key, 0, #text - 1) == text then return 'fence' end
	return kind
end

for i = 1, n do
	from[i], to[i] = look(KEYS[2 * i - 1]), look(KEYS[2 * i])
	local both = from[i] ~= 'none' and from[i] ~= 'fence' and to[i] ~= 'none' and to[i] ~= 'fence'
	if both and not (ARGV[i + 2] == 'log' and from[i] == 'stream' and to[i] == 'stream') then
		return redis.error_reply('BUSY ' .. KEYS[2 * i])
	end
end

redis.call('PEXPIRE', KEYS[1], 1, 'GT') -- changes nothing, and is a write that needs no memory
for i = 1, n do
	local old, new = KEYS[2 * i - 1], KEYS[2 * i]
	there[i] = (from[i] == 'none' or from[i] == 'fence') and '0' or '1'
	if to[i] == 'fence' then redis.call('DEL', new) end
	if there[i] == '1' and to[i] == 'stream' then
		local late = redis.call('XRANGE', old, '-', '+', 'COUNT', 100)
		while #late > 0 do
			for _, entry in ipairs(late) do redis.call('XADD', new, '*', unpack(entry[2])) end
			late = redis.call('XRANGE', old, '(' .. late[#late][1], '+', 'COUNT', 100)
		end
		redis.call('DEL', old)
	elseif there[i] == '1' then
		redis.call('RENAME', old, new)
	end
	if ARGV[i + 2] ~= '' then redis.call('SET', old, text) end
end
return table.concat(there)
