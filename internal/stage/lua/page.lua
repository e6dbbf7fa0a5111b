-- Touches a page of all entities, one after another at an even rate. Called until the cursor is '0' it
-- names every entity that was there all the time.
--
-- KEYS    1 entities   2 touches   3 ownership   4 log
-- ARGV    1 cursor, '0' at first   2 about how many   3 ms from now for the first   4 microseconds between two
-- Returns {the next cursor, how many}
local reply, scores = redis.call('HSCAN', KEYS[1], ARGV[1], 'COUNT', ARGV[2]), {}
local first, step = time_in(tonumber(ARGV[3])), tonumber(ARGV[4])
for i = 1, #reply[2], 2 do
	scores[#scores + 1] = time_text(first + math.floor((i - 1) / 2 * step / 1000))
	scores[#scores + 1] = reply[2][i]
end
if #scores > 0 then
	redis.call('ZADD', KEYS[2], 'LT', unpack(scores))
	wake(KEYS[4], KEYS[3], scores[1])
end
return { reply[1], #scores / 2 }
