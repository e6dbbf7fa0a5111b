-- Forgets the oldest times of tasks beyond so many, if they are over and nothing can name them again: every fact that was
-- there when the caller looked has been acked since, and who applies one of those once more is told so by the horizon,
-- which is the last fact of each partition at that look.
--
-- ARGV    1 the owner's fence   2 when the caller looked, in ms   3 how many times stay   4 in ms, they stay so long after their end
--         5 cells that may be told more (handlers, and those that count) stay so long   6 number of partitions, then the horizon of
--         each, then tasks
-- Returns how many cells are gone, at most 128 and a few; whether there are more
-- Errors  FENCED
local fenced = fence(OWN, ARGV[1])
if fenced then return fenced end
local looked, keep, n, out = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[6]), {}
local over = { success = true, failed = true, timeout = true, crashed = true, skipped = true, cancelled = true }
local now = time_now()
for p = 1, n do call('HSET', DEFS, 'horizon:' .. (p - 1), ARGV[6 + p]) end

-- Whether a cell is over for good.
local function stays(g)
	if not over[g.s] or g.z or g.d > 0 or not g.u or g.u >= looked or g.u > now - tonumber(ARGV[4]) then return true end
	local open = next(g.f) ~= nil
	for _, e in pairs(g.n > 0 and g.e or {}) do open = open or e[1] < e[2] end
	return open and g.u > now - tonumber(ARGV[5])
end

for i = 7 + n, #ARGV do
	local task = ARGV[i]
	local low = '[' .. task .. '@'
	local high = '(' .. task .. 'A'
	local more = call('ZLEXCOUNT', GRID, low, high) - keep
	while more > 0 and #out < 128 do
		local first = call('ZRANGE', GRID, low, high, 'BYLEX', 'LIMIT', 0, 1)[1]
		local t = tonumber(first:match('@(%d+)$'))
		local g, cell = load_cell(task, t)
		if g and stays(g) then break end
		call('ZREM', GRID, first)
		call('HDEL', CELLS, cell)
		call('HSET', DEFS, 'low:' .. task, time_text(t + 1))
		out[#out + 1] = cell
		more = more - 1
	end
	if #out >= 128 then break end
end
return { #out, #out >= 128 and 1 or 0, unpack(out) }
