-- What is due in the heap.
--
-- ARGV    1 how many at most
-- Returns the time now; ms until the next is due, 0: more are due, -1: none waits; then of each due one: ID, rule, position
local now, most = time_now(), tonumber(ARGV[1])
local first, out = call('ZRANGE', HEAP, 0, most, 'WITHSCORES'), { time_text(now), -1 }
for i = 1, #first, 2 do
	local at = time_number(first[i + 1])
	if at > now or i > 2 * most then
		out[2] = math.max(at - now, 0)
		break
	end
	local of = call('HMGET', RULES, first[i], '@' .. first[i])
	out[#out + 1], out[#out + 2], out[#out + 3] = first[i], of[1] or '', of[2] or ''
end
return out
