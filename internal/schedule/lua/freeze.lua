-- First half of a re-run: makes void what cells have, so that they only take notes until thaw.lua. Operations are numbered: an
-- older one changes nothing, the same one answers as it did.
--
-- Asks    operation; to: what becomes of the cells: 'cleared', 'cancelled': what is not over alone, and without a
--         second half; places: task, t of each
-- Returns of each the generation that its next firing has, 0: the operation is too old, or the task is not there
local op, to, out = ask.operation, ask.to, {}
for i, x in ipairs(ask.places) do
	local g, task, t = load_cell(x.task, x.t, to == 'cleared')
	local last = g and g.y or 0
	if g and last < op then
		g.y = op
		if to == 'cleared' or busy[g.s] then -- else nothing is under way
			enter(task, t, g, to)
			g.d, g.c, g.ng, g.r = 0, 0, g.g + 1, nil
			if to == 'cleared' then g.z = op else g.u = time_now() end
		end
		save(task, t, g)
		if def_of(task) then admit_next(task, 1) end
	end
	out[i] = g and last <= op and g.ng or 0
end
repeated()
return answer(out)
