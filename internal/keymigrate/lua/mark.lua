-- Marks an app as one whose keys are being moved, under both of its names, and has the
-- metadata of its streams say so. All or nothing.
--
-- KEYS    1 and 2 its streams, hashes, under either names   3 … metadata of streams
-- ARGV    1 the field of the mark   2 the mark   then for each of the metadata: what it
--         must be, and what it becomes
-- Returns 1 done, 0 metadata was changed meanwhile, and nothing was done
for i = 3, #KEYS do
	local stored, at = redis.call('GET', KEYS[i]) or '', 2 * i - 3
	if stored ~= ARGV[at] and stored ~= ARGV[at + 1] then return 0 end
end
redis.call('PEXPIRE', KEYS[1], 1, 'GT') -- changes nothing, and is a write that needs no memory
for i = 3, #KEYS do redis.call('SET', KEYS[i], ARGV[2 * i - 2]) end
for i = 1, 2 do redis.call('HSET', KEYS[i], ARGV[1], ARGV[2]) end
return 1
