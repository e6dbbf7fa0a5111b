-- Gives keys their other names, all or none, and leaves fences where nothing may be written any
-- more: strings, on which commands of streams and hashes fail. Repeated, it only sets lost fences.
--
-- KEYS    1 the app's streams, a hash   then the names of each key, from and to; then
--         locks
-- ARGV    1 the field of the mark   2 the mark of this move   3 how many keys   4 the
--         text of a fence   then for each key, if it is there under both names:
--         '' refuse   'fence' refuse, and leave a fence   'log' append the entries of
--         the old one, which came in spite of a fence, and leave a fence   'id' drop the
--         old one, which says the same
-- Returns how many of the keys were there
-- Errors  OVER when the mark is another one, HELD and the name of a lock that a worker
--         holds, BUSY and the name of a key that is there under both names
local n, text, from, to, there = tonumber(ARGV[3]), ARGV[4], {}, {}, 0
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return redis.error_reply('OVER') end
for i = 2 * n + 2, #KEYS do
	if redis.call('EXISTS', KEYS[i]) == 1 then return redis.error_reply('HELD ' .. KEYS[i]) end
end

-- The type of a key, 'none' if it is not there or is a fence.
local function look(key)
	local kind = redis.call('TYPE', key).ok
	if kind == 'string' and redis.call('GETRANGE', key, 0, #text - 1) == text then return 'none', true end
	return kind, false
end

local fenced = {}
for i = 1, n do
	local what = ARGV[i + 4]
	from[i] = look(KEYS[2 * i])
	to[i], fenced[i] = look(KEYS[2 * i + 1])
	if from[i] ~= 'none' then
		there = there + 1
		if to[i] ~= 'none' and what ~= 'id' and not (what == 'log' and from[i] == 'stream' and to[i] == 'stream') then
			return redis.error_reply('BUSY ' .. KEYS[2 * i + 1])
		end
	end
end

redis.call('PEXPIRE', KEYS[1], 1, 'GT') -- changes nothing, and is a write that needs no memory
for i = 1, n do
	local old, new, what = KEYS[2 * i], KEYS[2 * i + 1], ARGV[i + 4]
	if fenced[i] then redis.call('DEL', new) end
	if from[i] ~= 'none' and to[i] == 'none' then
		redis.call('RENAME', old, new)
	elseif from[i] ~= 'none' then
		if what == 'log' then
			local late = redis.call('XRANGE', old, '-', '+', 'COUNT', 100)
			while #late > 0 do
				for _, entry in ipairs(late) do redis.call('XADD', new, '*', unpack(entry[2])) end
				late = redis.call('XRANGE', old, '(' .. late[#late][1], '+', 'COUNT', 100)
			end
		end
		redis.call('DEL', old)
	end
	if what == 'fence' or what == 'log' then redis.call('SET', old, text) end
end
return there
