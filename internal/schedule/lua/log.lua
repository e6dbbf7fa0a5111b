-- Appends lines to the log of a run, which is kept for a time behind its last line.
--
-- KEYS    15 the log
-- Asks    most: how many lines stay; kept: for how many ns
-- ARGV    behind that of each line: attempt, where it comes from, when in ms, text
for i = 2, #ARGV, 4 do
	call('XADD', KEYS[15], 'MAXLEN', '~', ask.most, '*', 'a', ARGV[i], 'o', ARGV[i + 1], 't', ARGV[i + 2], 'l', ARGV[i + 3])
end
call('PEXPIRE', KEYS[15], ms(ask.kept))
return 1
