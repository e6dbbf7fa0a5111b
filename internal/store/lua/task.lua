-- Claims a due time of a durable task, or looks how far the task has come. For a task never seen
-- before, the time of the look is stored, so that restarts do not move its first due time. Repeated
-- by the same leader, it answers as the first time.
--
-- KEYS    1 durable tasks, a hash: name to JSON {v, last due time in ms, by whom}   2 the leader's lock
-- ARGV    1 task   2 the leader's token
--         3 the last due time as the caller knows it, in ms, '' for a look
--         4 the due time to claim, in ms
-- Returns {state, last due time in ms, server's time in ms}
--         state 1 claimed, 0 it is only told: a look, or the last one is another, -1 it is too early
-- Errors  FENCED when another worker leads
if redis.call('GET', KEYS[2]) ~= ARGV[2] then
	return redis.error_reply('FENCED another worker leads')
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local stored = redis.call('HGET', KEYS[1], ARGV[1])
local record
if stored then
	record = cjson.decode(stored)
	if record.v ~= 1 then
		return redis.error_reply('ERR durable task ' .. ARGV[1] .. ' has a version other than 1: written by another release')
	end
end

local function store(last, by)
	redis.call('HSET', KEYS[1], ARGV[1], cjson.encode({ v = 1, last = last, by = by }))
end

if not record then
	store(now, '') -- no run was claimed
	return { 0, now, now }
end
local due = tonumber(ARGV[4])
if ARGV[3] == '' then return { 0, record.last, now } end
if record.last == due and record.by == ARGV[2] then
	store(due, ARGV[2]) -- what is stored already: a write, for WAIT; see durably
	return { 1, due, now }
end
if record.last ~= tonumber(ARGV[3]) or due <= record.last then return { 0, record.last, now } end
if due > now then return { -1, record.last, now } end
store(due, ARGV[2])
return { 1, due, now }
