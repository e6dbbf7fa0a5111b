// Package jobs is what jobs are, without Redis: what they say, what is wrong with it, at which logical times their
// triggers fire, and which tasks hang on which sources. By file:
//
//	job.go    Job, Trigger, Task, as they are written and stored
//	ref.go    Source and Ref: how tasks name triggers and other tasks
//	check.go  Check: all faults of a job, each with its place
//	graph.go  Graph: the tasks of all jobs; unknown sources, cycles, what hangs on a task
//	file.go   ParseFile: jobs as people write them, and the lines of faults
//	diff.go   Diff: what another definition changes
//	times.go  Times: the logical times of a trigger, and what becomes of those that were missed
package jobs
