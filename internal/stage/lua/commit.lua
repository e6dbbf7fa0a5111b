-- Ends visits: stores or deletes their entities if these have still the version that the stage was given,
-- and settles what becomes of the visits; of each entity all or nothing. A repetition, and a call that a
-- dying connection delivers late, answers gone: runs are known by the number of the call that began them.
--
-- KEYS    1 ownership   2 runs   3 failures   4 entities   5 versions, a counter
--         6... queues, and sorted sets of the dead
-- ARGV    1 the owner's fence, then for each entity:
--         ID; 's' to store it, 'x' to delete it, '' to leave it; the version that must be stored; its
--         passes; its payload; the number of the call that began its first visit; number of visits;
--         then for each visit: stage, what becomes of it, number of a key, a time, a text. The first must run
--           e  it ends
--           n  it ends, and waits for the time
--           f  it failed with the text, and waits for the time
--           d  it died with the text at the time, into the dead of the key
--           c  it ends well after failures; the key is the dead, none of a touch
--           p  it waits for the time, whether there was one or not
--           b  it begins to run, with the time, and the text as the number of this call; if it runs already
--              it waits for the time, as p. What waited is forgotten. Behind a second number, how often visits were
--              put as a take told it, it waits on where more were put since: the function has been called
--           a  it runs on, with the time and the text as the number of its call, and alone in its worker
--           z  it waits no more, nor is dead, whichever the key is: the entity is deleted
-- Returns for each entity: ok, begun (ok, and b has begun a visit), gone (its first visit does not run, or
--         the entity is not there), conflict (it has another version); its version; what is stored, of a
--         conflict
-- Errors  FENCED
local fenced = fence(KEYS[1], ARGV[1])
if fenced then return fenced end
even_if_full(KEYS[1])
local runs, failures, entities = KEYS[2], KEYS[3], KEYS[4]

-- Settles the visit whose five arguments begin at ARGV[at]. Returns whether it begins.
local function settle(id, at)
	local field, what, key, time, text = ARGV[at] .. ' ' .. id, ARGV[at + 1], KEYS[tonumber(ARGV[at + 2])], ARGV[at + 3], ARGV[at + 4]
	if what == 'b' then
		if redis.call('HEXISTS', runs, field) == 0 then
			local number, puts = text:match('^(%d+) ?(%d*)$')
			if puts == '' or puts == (redis.call('HGET', KEYS[1], 'puts') or '0') then redis.call('ZREM', key, id) end
			redis.call('HSET', runs, field, moment(time) .. ' ' .. number)
			return true
		end
		what = 'p'
	end
	if what == 'a' then
		redis.call('HSET', runs, field, moment(time) .. ' alone ' .. text)
	elseif what == 'z' then
		redis.call('ZREM', key, id)
	elseif what ~= 'p' then
		redis.call('HDEL', runs, field)
	end
	if what == 'n' or what == 'f' or what == 'p' then redis.call('ZADD', key, 'LT', moment(time), id) end
	if what == 'f' or what == 'd' then redis.call('HSET', failures, field, text) end
	if what == 'd' then redis.call('ZADD', key, moment(time), id) end
	if what == 'c' and key then redis.call('ZREM', key, id) end
	if what == 'c' or what == 'z' then redis.call('HDEL', failures, field) end
end

local out, i = {}, 2
while i <= #ARGV do
	local id, mode, wanted, first = ARGV[i], ARGV[i + 1], ARGV[i + 2], i + 7
	local behind = first + 5 * tonumber(ARGV[i + 6])
	local mark = redis.call('HGET', runs, ARGV[first] .. ' ' .. id)
	local outcome, version, stored = 'ok', wanted, nil
	if not mark or mark:match('%S+$') ~= ARGV[i + 5] then
		outcome, version = 'gone', version_of(redis.call('HGET', entities, id))
	elseif mode ~= '' then
		stored = redis.call('HGET', entities, id)
		version = version_of(stored)
		if not stored then
			outcome = 'gone'
			for at = first, behind - 1, 5 do redis.call('HDEL', runs, ARGV[at] .. ' ' .. id) end
		elseif version ~= wanted then
			outcome = 'conflict' -- it runs on, with what is stored
		elseif mode == 'x' then
			redis.call('HDEL', entities, id)
		else
			version = time_text(redis.call('INCRBY', KEYS[5], 1))
			redis.call('HSET', entities, id, version .. ' ' .. ARGV[i + 3] .. ' ' .. ARGV[i + 4])
		end
	end
	if outcome == 'ok' then
		for at = first, behind - 1, 5 do
			if settle(id, at) then outcome = 'begun' end
		end
	end
	out[#out + 1], out[#out + 2], out[#out + 3] = outcome, version, outcome == 'conflict' and stored or ''
	i = behind
end
return out
