// Package schedule runs the tasks of jobs at logical times. A trigger has such times, by an interval or a crontab line; a task
// runs at a time when all that it waits for has ended at that very time, and what waits for the task follows. Times at which no worker was
// there are caught up, runs of dead workers are taken over, and each (task, time) has one run at a time and, in success, one in all.
//
// The scheduler lives in the workers of an app: there is no other process. What is to be done is in Redis; jobs come from code, by
// Scheduler.Job, or from files, by Scheduler.Apply and `runnel schedule apply`. docs/schedule.md begins with an example.
//
// By file:
//
//	schedule.go  New, Options; how an app has a scheduler
//	job.go       Job, Trigger, Task: what is scheduled
//	run.go       Func and Run: what a task does
//	ask.go       Apply, Pause, Activate, Backfill …: what people ask for
//	owner.go     the owner of a partition applies facts, fires triggers, and takes runs
//	heap.go      times that are due, and what catches up
//	operate.go   what people asked for is done
//	rerun.go     tasks run again, are cleared, or cancelled
//	register.go  jobs of the code are stored
//	forget.go    old times are forgotten
//	book.go      what this worker knows of the stored jobs
//	crew.go      the runs of a worker, and the places for them
//	attempt.go   a function is called, and its end stored
//	beat.go      the worker says that its runs live
package schedule
