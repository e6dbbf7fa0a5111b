-- Forgets the oldest times of tasks beyond so many, if they are over and nothing can name them again: every fact that was
-- there when the caller looked has been acked since, and who applies one of those once more is told so by the horizon,
-- which is the last fact of each partition at that look.
--
-- Asks    fence of the owner; looked: when the caller looked, in ms; keep: how many times stay; keepMin: in ns, they stay so long after
--         their end; keepOpen: cells that may be told more (handlers, and those that count) stay so long; horizon of each partition; tasks
-- Returns how many cells are gone, at most 128: there may be more then
-- Errors  FENCED
local gone, now = 0, time_now()
for p, last in each(ask.horizon) do call('HSET', DEFS, 'horizon:' .. (p - 1), last) end

-- Whether a cell is over for good.
local function stays(g)
	if not (result_of[g.s] or g.s == 'cancelled') or g.z or g.d > 0 or not g.u or g.u >= ask.looked or g.u > now - ms(ask.keepMin) then return true end
	local open = next(g.f) ~= nil
	for _, e in pairs(g.n > 0 and g.e or {}) do open = open or e[1] < e[2] end
	return open and g.u > now - ms(ask.keepOpen)
end

for _, task in each(ask.tasks) do
	local low = '[' .. task .. '@'
	local high = '(' .. task .. 'A'
	local most = math.min(call('ZLEXCOUNT', GRID, low, high) - ask.keep, 128 - gone)
	for _, first in ipairs(most > 0 and call('ZRANGE', GRID, low, high, 'BYLEX', 'LIMIT', 0, most) or {}) do
		local g, _, t = load_cell(task_of(first))
		if not g or not stays(g) then
			call('ZREM', GRID, first)
			call('HDEL', CELLS, cell_of(task, t))
			call('HSET', DEFS, 'low:' .. task, time_text(t + 1))
			gone = gone + 1
		end
	end
end
return answer(gone)
