-- Makes a pin last. Without the pin somebody else holds what it held.
--
-- KEYS    1 holders
-- ARGV    1 the pin
local at = call('HGET', KEYS[1], ARGV[1])
if at then call('HSET', KEYS[1], ARGV[1], at:match('^%S+')) end
