-- Memory is scarce: removes the oldest entries of a log, whoever needs them. Who has not had them counts them by their numbers.
--
-- KEYS    1 log
-- ARGV    1 how many at most
-- Returns how many
local length = call('XLEN', KEYS[1])
return call('XTRIM', KEYS[1], 'MAXLEN', math.max(length - ARGV[1], 0))
