// Package chaos hurts real worker processes on a real redis-server and has the
// history judged. It holds tests only:
//
//	go test ./internal/chaos                    a short run
//	RUNNEL_CHAOS_DURATION=60s go test …         a longer one
//	RUNNEL_CHAOS_SEED=7 go test …               the same choice of faults again
//
// The test binary starts itself as the workers. Kills, stops past the lease,
// terminations, joins and cut connections go on while producers send; in the
// end internal/history says whether order was kept, nothing was lost and every
// partition had one owner at a time.
package chaos
