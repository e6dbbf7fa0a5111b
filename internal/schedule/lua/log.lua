-- Appends lines to the log of a run, which is kept for a time behind its last line.
--
-- KEYS    15 the log   ARGV    1 how many lines stay   2 ms; then of each: attempt, where it comes from, when in ms, text
for i = 3, #ARGV, 4 do
	call('XADD', KEYS[15], 'MAXLEN', '~', ARGV[1], '*', 'a', ARGV[i], 'o', ARGV[i + 1], 't', ARGV[i + 2], 'l', ARGV[i + 3])
end
call('PEXPIRE', KEYS[15], ARGV[2])
return 1
