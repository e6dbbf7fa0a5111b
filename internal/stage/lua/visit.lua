-- Puts visits into the queue of a stage. One that waits for an earlier time stays as it is. May be
-- repeated.
--
-- KEYS    1 queue   2 ownership   3 log
-- ARGV    1 when, ms since 1970 or '+' and ms from now   2... IDs
-- Returns 1 if the owner was woken, else 0
local at, scores = moment(ARGV[1]), {}
for i = 2, #ARGV do scores[#scores + 1], scores[#scores + 2] = at, ARGV[i] end
redis.call('ZADD', KEYS[1], 'LT', unpack(scores))
note_put(KEYS[2])
return wake(KEYS[3], KEYS[2], at)
