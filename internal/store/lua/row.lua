-- Reads a row of a table.
--
-- KEYS    1 rows   2 when those end that do
-- ARGV    1 key
-- Returns the row, or false; when it ends, in ms, or false; the server's clock, in ms
local now = redis.call('TIME')
return { redis.call('HGET', KEYS[1], ARGV[1]), redis.call('ZSCORE', KEYS[2], ARGV[1]), now[1] * 1000 + math.floor(now[2] / 1000) }
