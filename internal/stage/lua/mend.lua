-- Tries failed visits again, or gives them up. What runs is left alone, and so is what is in another state
-- by now. May be repeated.
--
-- KEYS    1 queue of the stage   2 its dead   3 runs   4 failures   5 ownership   6 log
-- ARGV    1 stage   2 what to do:
--           now    one that waits after a failure is due now
--           drop   one that waits after a failure is given up
--           retry  a dead one is due now, as if it had never failed
--           bury   a dead one is given up
--         3... IDs
-- Returns 1 or 0 for each: whether that was done
local stage, what, queue, dead, out, woken = ARGV[1], ARGV[2], KEYS[1], KEYS[2], {}, false
local now = time_text(time_now())
for i = 3, #ARGV do
	local id, field, did = ARGV[i], stage .. ' ' .. ARGV[i], 0
	if redis.call('HEXISTS', KEYS[3], field) == 0 and redis.call('HEXISTS', KEYS[4], field) == 1 then
		local died = redis.call('ZSCORE', dead, id)
		if (what == 'now' or what == 'drop') and not died and redis.call('ZSCORE', queue, id) then
			did = 1
		elseif (what == 'retry' or what == 'bury') and died then
			did = 1
			redis.call('ZREM', dead, id)
		end
		if did == 1 then
			if what == 'drop' then redis.call('ZREM', queue, id) end
			if what ~= 'now' then redis.call('HDEL', KEYS[4], field) end
			if what == 'now' or what == 'retry' then
				redis.call('ZADD', queue, 'LT', now, id)
				woken = true
			end
		end
	end
	out[#out + 1] = did
end
if woken then
	note_put(KEYS[5])
	wake(KEYS[6], KEYS[5], now)
end
return out
