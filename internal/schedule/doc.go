// Package schedule is what is in Redis of schedulers: the scripts of a partition in lua/, which cells.lua begins by saying what is
// stored, and a typed method for each. By file:
//
//	scheduler.go  Scheduler: a scheduler's keys and scripts
//	apply.go      facts, and their tokens, which fire cells
//	take.go       runs are taken by workers, which say that they live; attempts end
//	heap.go       triggers and catch-ups: what is due, and facts of logical times
//	rerun.go      the two halves of a re-run; cancelled runs
//	define.go     definitions, pauses
//	look.go       cells as people see them; cells that are forgotten
//
// Every method may be repeated: the state tells what has been done. The simulation in sim_test.go holds them to a model of the
// rules in which everything happens one after the other.
package schedule
