-- Removes a stream's metadata, and the stream from the app's list, in one step: a stream made anew
-- in between would not be listed. It may be repeated.
--
-- KEYS    1 metadata   2 list of streams
-- ARGV    1 name of the stream
-- Returns 1
redis.call('DEL', KEYS[1])
redis.call('HDEL', KEYS[2], ARGV[1])
return 1
