-- Begins the visits that are due, of each stage the earliest first. They run until commit.lua ends them,
-- even if the owner dies: the next one finds them in the runs. What runs already is passed over: it is
-- looked at again when its run ends. Visits of entities that are not there any more are dropped.
-- Repeated it begins others; those of a lost reply are in the runs.
--
-- KEYS    1 ownership   2 runs   3 failures   4 entities   5... queues
-- ARGV    1 the owner's fence   2 '1': the entities are stored here   3 '1': sleep if nothing is due
--         4 about how many bytes at most   5 number of this call under the ownership; commit.lua knows
--         the runs of a call by it   6 number of stages with '!', then their names
--         then for each queue: its stage, how many at most
-- Returns ms until the next one of these is due, 0: more are due, -1: none waits; how many were dropped;
--         how many ran before; how many were passed over since they run, 0 or more; the stages of which
--         more are due, each behind a space; how often visits were put;
--         then for each visit: stage, ID, its time, what is known of the entity's failures,
--         '\n<stage> <failure>' for each, the entity as it is stored or '' if an earlier visit of
--         the reply has it
-- Errors  FENCED
local fenced = fence(KEYS[1], ARGV[1])
if fenced then return fenced end
even_if_full(KEYS[1]) -- what is begun takes about what it leaves
local runs, failures, entities, stored = KEYS[2], KEYS[3], KEYS[4], ARGV[2] == '1'
local stages, bytes, now = tonumber(ARGV[6]), tonumber(ARGV[4]), time_now()
local running, failed = redis.call('HLEN', runs), redis.call('HLEN', failures) > 0
local puts = redis.call('HGET', KEYS[1], 'puts') or '0'
local out, seen, dropped, passed, more, next_at = { -1, 0, running, 0, '', puts }, {}, 0, 0, '', nil

local function fields_of(stage, ids)
	local fields = {}
	for i, id in ipairs(ids) do fields[i] = stage .. ' ' .. id end
	return fields
end

-- The IDs to begin of a queue, with their times and what is stored of them: read one by one, since a few
-- may be as large as is allowed.
local function begin(queue, stage, most)
	local ids, times, values, from, to = {}, {}, {}, 0, most -- one more tells when the next is due
	while true do
		local found, due, marks = redis.call('ZRANGE', queue, from, to, 'WITHSCORES'), {}, nil
		local n = #found / 2
		while #due < n and time_number(found[2 * #due + 2]) <= now do due[#due + 1] = found[2 * #due + 1] end
		if running > 0 and #due > 0 then marks = redis.call('HMGET', runs, unpack(fields_of(stage, due))) end
		for i, id in ipairs(due) do
			if marks and marks[i] then
				passed = passed + 1
			elseif #ids == most or bytes <= 0 then
				more = more .. ' ' .. stage
				return ids, times, values
			else
				local value = stored and redis.call('HGET', entities, id)
				if value then bytes = bytes - #value end
				ids[#ids + 1], times[#times + 1], values[#values + 1] = id, time_text(time_number(found[2 * i])), value
			end
		end
		if #due < n then
			local at = time_number(found[2 * #due + 2])
			if not next_at or at < next_at then next_at = at end
		end
		if #due < n or n <= to - from then return ids, times, values end
		from, to = to + 1, to + running -- no more than those can have been passed over
	end
end

-- What is known of the failures of an entity.
local function failures_of(id)
	local fields, known = {}, ''
	if not failed then return known end
	for i = 1, stages do fields[i] = ARGV[6 + i] .. ' ' .. id end
	for i, failure in ipairs(redis.call('HMGET', failures, unpack(fields))) do
		if failure then known = known .. '\n' .. ARGV[6 + i] .. ' ' .. failure end
	end
	return known
end

for k = 5, #KEYS do
	local at = 7 + stages + 2 * (k - 5)
	local stage = ARGV[at]
	local ids, times, values = begin(KEYS[k], stage, tonumber(ARGV[at + 1]))
	if #ids > 0 then
		local begun = {}
		redis.call('ZREM', KEYS[k], unpack(ids))
		for i, id in ipairs(ids) do
			local value, field = values[i], stage .. ' ' .. id
			if stored and not value then
				dropped = dropped + 1
				if failed then redis.call('HDEL', failures, field) end
			else
				begun[#begun + 1], begun[#begun + 2] = field, times[i] .. ' ' .. ARGV[5]
				for _, text in ipairs({ stage, id, times[i], failures_of(id), not seen[id] and value or '' }) do out[#out + 1] = text end
				seen[id] = true
			end
		end
		if #begun > 0 then redis.call('HSET', runs, unpack(begun)) end
	end
end
if more ~= '' then next_at = now end
if next_at then out[1] = next_at - now end
out[2], out[4], out[5] = dropped, passed, more
if ARGV[3] == '1' then
	-- The owner is awake from that time on anyway, so nothing later wakes it.
	local sleeps = '0'
	if #out == 6 and more == '' then sleeps = next_at and time_text(next_at) or '9007199254740991' end
	redis.call('HSET', KEYS[1], 'sleeps', sleeps)
end
return out
