-- Makes a pin last, without which somebody else holds what it held, or removes one that lasts: one with a time belongs to a
-- subscription that is just made.
--
-- KEYS    1 holders
-- ARGV    1 the pin   2 1 if it is to last, else 0
local at, til = (call('HGET', KEYS[1], ARGV[1]) or ''):match('^(%S+)(.*)$')
if at and ARGV[2] == '1' then call('HSET', KEYS[1], ARGV[1], at) elseif til == '' then call('HDEL', KEYS[1], ARGV[1]) end
