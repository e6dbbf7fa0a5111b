-- A due queue, for scripts: what they call stands before them when they are
-- loaded. An entry has an ID, a time before which it is not due, a version that
-- each put raises, data, and attempts. It waits, or it runs, or both: then it was
-- put again while it runs. Times are milliseconds since 1970.

-- Doubles hold milliseconds and sequence numbers exactly, but have to be told to
-- print them so.
local function due_text(n) return string.format('%.0f', n) end

-- The embedded server prints large scores as 4e+12, which its tonumber refuses.
local function due_number(score) return tonumber(score) or tonumber((score:gsub('e', '.0e'))) end

local function due_now()
	local t = redis.call('TIME')
	return t[1] * 1000 + math.floor(t[2] / 1000)
end

-- The time that is so many milliseconds from now, rounded up: nothing is early.
local function due_in(ms)
	local t = redis.call('TIME')
	local whole = t[2] % 1000 == 0 or ms <= 0
	return t[1] * 1000 + math.floor(t[2] / 1000) + ms + (whole and 0 or 1)
end

-- The queue whose six keys begin at KEYS[first]. Keys of a wrong type are found
-- here, before anything is written.
local function due_queue(first)
	local q = { due = KEYS[first], run = KEYS[first + 1], ver = KEYS[first + 2],
		data = KEYS[first + 3], att = KEYS[first + 4], seq = KEYS[first + 5] }
	for _, key in ipairs({ q.due, q.run }) do redis.call('ZCARD', key) end
	for _, key in ipairs({ q.ver, q.data, q.att }) do redis.call('HLEN', key) end
	redis.call('GET', q.seq)
	return q
end

-- Puts an entry: 'set' its time is at, 'min' the earlier one of at and the one it
-- has, 'nx' only if there is no such entry, 'xx' only if there is one. Without an
-- ID it gets one of 16 digits, larger than all before it. Without data it keeps
-- what it has. Returns ID and version, nothing where the mode forbids it.
local function due_put(q, id, at, mode, data)
	local waits = id and redis.call('ZSCORE', q.due, id)
	local there = waits or id and redis.call('ZSCORE', q.run, id)
	if mode == 'nx' and there or mode == 'xx' and not there then return nil end
	local version = redis.call('INCR', q.seq)
	id = id or string.format('%016.0f', version)
	if mode ~= 'min' or not waits or at < due_number(waits) then
		redis.call('ZADD', q.due, due_text(at), id)
	end
	redis.call('HSET', q.ver, id, due_text(version))
	if data then redis.call('HSET', q.data, id, data) end
	return id, version
end

-- The IDs that are due, at most n, each followed by its time: the earliest first,
-- those of one time by ID.
local function due_list(q, now, n)
	return redis.call('ZRANGEBYSCORE', q.due, '-inf', due_text(now), 'WITHSCORES', 'LIMIT', 0, n)
end

-- Milliseconds until the next entry is due that does not run, -1 if there is none.
local function due_wait(q, now)
	local running = redis.call('ZCARD', q.run)
	local first = redis.call('ZRANGE', q.due, 0, running, 'WITHSCORES')
	for i = 1, #first, 2 do
		if running == 0 or not redis.call('ZSCORE', q.run, first[i]) then return math.max(due_number(first[i + 1]) - now, 0) end
	end
	return -1
end

-- Forgets an entry that neither waits nor runs any more.
local function due_forget(q, id)
	for _, key in ipairs({ q.ver, q.data, q.att }) do redis.call('HDEL', key, id) end
end

-- Takes at most n entries that are due and do not run: they run from now on.
-- Returns of each {ID, version, attempts with this one, time, data}.
local function due_take(q, now, n)
	local taken = {}
	local found = due_list(q, now, n + redis.call('ZCARD', q.run))
	for i = 1, #found, 2 do
		local id, at = found[i], found[i + 1]
		if #taken == n then break end
		if not redis.call('ZSCORE', q.run, id) then
			redis.call('ZREM', q.due, id)
			redis.call('ZADD', q.run, at, id)
			taken[#taken + 1] = { id, redis.call('HGET', q.ver, id) or '0', redis.call('HINCRBY', q.att, id, 1),
				due_text(due_number(at)), redis.call('HGET', q.data, id) or '' }
		end
	end
	return taken
end

-- Ends the run of an entry. next, if it is not nil, is when it is due again. An
-- entry that was put again meanwhile stays, due at the earlier of both times. A
-- failure leaves its attempts. Returns 'gone' if it does not run: somebody else
-- ended that, 'again' if it was put again, 'later' if it is due at next, 'done'
-- if it is no more.
local function due_done(q, id, version, failed, next)
	if redis.call('ZREM', q.run, id) == 0 then return 'gone' end
	if not failed then redis.call('HDEL', q.att, id) end
	local waits = redis.call('ZSCORE', q.due, id)
	if next and (not waits or next < due_number(waits)) then redis.call('ZADD', q.due, due_text(next), id) end
	if redis.call('HGET', q.ver, id) ~= version then return 'again' end
	if next then return 'later' end
	due_forget(q, id)
	return 'done'
end

-- Lets all that runs wait again, due when it was. Returns how many.
local function due_recover(q)
	local running = redis.call('ZRANGE', q.run, 0, -1, 'WITHSCORES')
	for i = 1, #running, 2 do
		local id, at = running[i], running[i + 1]
		local waits = redis.call('ZSCORE', q.due, id)
		if not waits or due_number(at) < due_number(waits) then redis.call('ZADD', q.due, at, id) end
	end
	redis.call('DEL', q.run)
	return #running / 2
end

-- Removes an entry. Returns 0 if there was none, 1 if it waited, 2 if it ran.
local function due_remove(q, id)
	local waited, ran = redis.call('ZREM', q.due, id), redis.call('ZREM', q.run, id)
	due_forget(q, id)
	return ran == 1 and 2 or waited
end
