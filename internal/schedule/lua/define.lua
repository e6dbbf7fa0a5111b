-- Sets and deletes definitions, and the rules of triggers. An operation that is older than the last one changes nothing.
--
-- ARGV    1 operation   2 number of fields of definitions to set, then these with their values; number of fields to delete,
--         then these; number of triggers to set, then of each: ID, rule, position if it has none; number of triggers to delete,
--         then these
-- Returns 1; 2: more runs may go on, or have to go: repeat the call; 0: the operation is too old
local i = 1
local function arg() i = i + 1 return ARGV[i] end
if tonumber(call('HGET', DEFS, 'rev') or '0') > tonumber(ARGV[1]) then return 0 end
call('HSET', DEFS, 'rev', ARGV[1])
local left = 128

-- A limit may have become larger, or none.
for _ = 1, tonumber(arg()) do
	local field, value = arg(), arg()
	call('HSET', DEFS, field, value)
	local task = field:match('^task:(.*)')
	if task and left > 0 then left = left - admit_next(task, def_of(task), left) end
end

-- Makes void what is held of a task that goes.
local function let_go(task)
	for _, one in ipairs(call('ZRANGE', HELD, '[' .. task .. '|', '(' .. task .. '}', 'BYLEX', 'LIMIT', 0, left)) do
		call('ZREM', HELD, one)
		local g, cell = load_cell(task, tonumber(one:match('|(%d+)$')))
		if g then
			g.s = 'cleared'
			save(cell, g)
		end
		left = left - 1
	end
end

for _ = 1, tonumber(arg()) do
	local field = arg()
	call('HDEL', DEFS, field)
	local task = field:match('^task:(.*)')
	if task then let_go(task) end
end
for _ = 1, tonumber(arg()) do
	local id, rule, position = arg(), arg(), arg()
	if call('HGET', RULES, id) ~= rule then
		call('HSET', RULES, id, rule)
		if call('HEXISTS', RULES, '@' .. id) == 0 then call('HSET', RULES, '@' .. id, position) end
		if not paused(id) or id:find('#', 1, true) then -- what catches up goes on: its runs are held
			call('ZADD', HEAP, time_now(), id) -- its owner finds out when it goes on
			wake(LOG, OWN, '0')
		end
	end
end
for _ = 1, tonumber(arg()) do
	local id = arg()
	call('ZREM', HEAP, id)
	call('HDEL', RULES, id, '@' .. id, '-' .. id)
end
return left > 0 and 1 or 2
