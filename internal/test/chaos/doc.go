// Package chaos hurts real worker processes and real redis-servers and has the
// history judged. It holds tests only:
//
//	go test ./internal/test/chaos                    a short run
//	RUNNEL_CHAOS_DURATION=60s go test …         a longer one
//	RUNNEL_CHAOS_SEED=7 go test …               the same choice of faults again
//	RUNNEL_CHAOS_FAULTS=kill,stop go test …     only these
//	go test -run /cluster …                     only this topology
//	RUNNEL_CHAOS_KEEP=1 go test …               keeps the history of a run that succeeded, too
//
// The test binary starts itself as the workers, each behind proxies of its own. What
// is done to workers and to their links is the same everywhere (workerFaults); a
// topology is Redis as it is deployed, and adds what can be done to its servers. While
// producers send, one fault follows the other; in the end internal/test/history says
// whether order was kept, nothing was lost and every partition had one owner at a
// time. A long run is judged in rounds of two minutes, between which the workers are
// replaced and everything comes to rest, so that it needs no more memory and disk
// than a short one.
//
// A seed chooses the faults, their order and their lengths. What they meet is real
// time and real processes: the same seed is the same plan, not the same history.
// runneltest.Sim is what plays a history again.
package chaos
