-- Makes a pin last, without which another holds what it held or took it away, or removes it.
--
-- KEYS    1 holders
-- ARGV    1 the pin   2 1 if it is to last, else 0
local at = call('HGET', KEYS[1], ARGV[1])
if at and ARGV[2] == '1' then call('HSET', KEYS[1], ARGV[1], at:match('^%S+')) elseif at then call('HDEL', KEYS[1], ARGV[1]) end
