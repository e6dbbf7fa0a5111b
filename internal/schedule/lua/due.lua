-- What is due in the heap.
--
-- Asks    most: how many at most
-- Returns the time now; next: ms until the next is due, 0: more are due, -1: none waits; due, of each: id, rule, position
local now, next, due = time_now(), -1, {}
local first = call('ZRANGE', HEAP, 0, ask.most, 'WITHSCORES')
for i = 1, #first, 2 do
	local at, id = time_number(first[i + 1]), first[i]
	if at > now or i > 2 * ask.most then
		next = soon(at - now)
		break
	end
	local of = call('HMGET', RULES, id, '@' .. id)
	due[#due + 1] = { id = id, rule = of[1] or '', position = of[2] or '0' }
end
return answer({ now = now, next = next, due = list(due) })
