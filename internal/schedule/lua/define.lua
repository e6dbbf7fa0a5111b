-- Changes definitions, and the rules of triggers. An operation that is older than the last one changes nothing.
--
-- Asks    operation; whole: the changes are all that there is to know; unfinished: more of this follows, until which the partition knows
--         nothing; changes, of each: field and value, '' if it goes; or of a trigger: id, rule, '' if it goes, position if it has none, paused
-- Returns 1; 2: more runs may go on, or have to go: repeat the call; 0: the operation is too old
-- Errors  FORGOTTEN
local rev = call('HGET', DEFS, 'rev')
if not (rev or ask.whole) then return unknowing() end
if tonumber(rev or '0') > ask.operation then return answer(0) end
if not ask.unfinished then call('HSET', DEFS, 'rev', time_text(ask.operation)) end
local left = 128

local function set_field(field, value)
	local task = field:match('^task:(.*)')
	if value == '' then call('HDEL', DEFS, field) else call('HSET', DEFS, field, value) end
	-- A limit may have become larger, or none, a pause has ended, or what is held goes with its task.
	if task then left = left - admit_next(task, left) end
end

local function set_rule(id, r)
	call('ZREM', HEAP, id)
	if r.rule == '' then
		call('HDEL', RULES, id, '@' .. id, '-' .. id)
		return
	end
	call('HSET', RULES, id, r.rule)
	if call('HEXISTS', RULES, '@' .. id) == 0 then call('HSET', RULES, '@' .. id, r.position) end
	if not r.paused then -- what catches up goes on even then: its runs are held
		call('ZADD', HEAP, time_now(), id) -- its owner finds out when it goes on
		wake(LOG, OWN, '0')
	end
end

for _, c in ipairs(ask.changes) do
	if c.field then set_field(c.field, c.value) else set_rule(c.id, c) end
end
return answer(left > 0 and 1 or 2)
