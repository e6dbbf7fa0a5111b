-- Changes definitions, and the rules of triggers. An operation that is older than the last one changes nothing.
--
-- Asks    operation; changes, of each: field and value, '' if it goes; or of a trigger: id, rule, '' if it goes, position if it has none, paused
-- Returns 1; 2: more runs may go on, or have to go: repeat the call; 0: the operation is too old
if tonumber(call('HGET', DEFS, 'rev') or '0') > ask.operation then return answer(0) end
call('HSET', DEFS, 'rev', time_text(ask.operation))
local left = 128

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

local function set_field(field, value)
	local task = field:match('^task:(.*)')
	if value == '' then
		call('HDEL', DEFS, field)
		if task then let_go(task) end
		return
	end
	call('HSET', DEFS, field, value)
	-- A limit may have become larger, or none, or a pause has ended.
	if task and left > 0 then left = left - admit_next(task, def_of(task), left) end
end

local function set_rule(id, r)
	if r.rule == '' then
		call('ZREM', HEAP, id)
		call('HDEL', RULES, id, '@' .. id, '-' .. id)
		return
	end
	call('HSET', RULES, id, r.rule)
	if call('HEXISTS', RULES, '@' .. id) == 0 then call('HSET', RULES, '@' .. id, r.position) end
	if r.paused then -- what catches up goes on: its runs are held
		call('ZREM', HEAP, id)
	else
		call('ZADD', HEAP, time_now(), id) -- its owner finds out when it goes on
		wake(LOG, OWN, '0')
	end
end

for _, c in ipairs(ask.changes) do
	if c.field then set_field(c.field, c.value) else set_rule(c.id, c) end
end
return answer(left > 0 and 1 or 2)
