-- Second half of a re-run.
--
-- ARGV    1 operation   2 priority, then of each: task, t, '1' if it fires by itself, '1' if its end emits nothing, number of
--         edges, and of each of these: source, generation that it has to wait for
-- Returns how many were thawed
local op, n, i = tonumber(ARGV[1]), 0, 3
while i <= #ARGV do
	local task, t, edges = ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 4])
	local def = def_of(task)
	local g, cell = load_cell(task, t)
	if g and g.z == op then
		local some = false
		for k = i + 5, i + 3 + 2 * edges, 2 do
			local e = g.e[ARGV[k]]
			if e then e[2], some = math.max(e[2], tonumber(ARGV[k + 1])), true end
		end
		if g.n > 0 and some then
			local there = 0
			for _, e in pairs(g.e) do
				if e[1] >= 1 and e[1] >= e[2] then there = there + 1 end
			end
			g.c = math.min(there, g.n - 1)
		end
		g.z, g.p, g.i, g.o = nil, tonumber(ARGV[2]), tonumber(ARGV[2]), ARGV[1]
		if ARGV[i + 2] == '1' then g.d = g.d + 1 end
		if ARGV[i + 3] == '1' then g.h = g.ng end
		evaluate(task, t, g, def, cell)
		save(cell, g)
		n = n + 1
	end
	i = i + 5 + 2 * edges
end
repeated()
return n
