-- Second half of a re-run.
--
-- Asks    operation; priority; cells, of each: task, t, fires by itself, silent: its end emits nothing, waits: by source the generation that
--         it has to wait for
-- Returns nothing
for _, x in ipairs(ask.cells) do
	local g, task, t = load_cell(x.task, x.t)
	if g and g.z == ask.operation then
		local some = false
		for source, generation in pairs(x.waits or {}) do
			local e = g.e[source]
			if e then e[2], some = math.max(e[2], generation), true end
		end
		if g.n > 0 and some then
			local there = 0
			for _, e in pairs(g.e) do
				if e[1] >= e[2] then there = there + 1 end
			end
			g.c = math.min(there, g.n - 1)
		end
		g.z, g.p, g.i, g.o = nil, ask.priority, ask.priority, time_text(ask.operation)
		if x.fires then g.d = g.d + 1 end
		if x.silent then g.h = g.ng end
		evaluate(task, t, g)
	end
end
repeated()
return nil
